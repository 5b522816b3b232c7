// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

// GroupVersion is the API group and version of this package.
var GroupVersion = schema.GroupVersion{Group: "shop.example.com", Version: "v1alpha1"}

// SchemeBuilder adds the types of this package to a scheme.
var SchemeBuilder = (&scheme.Builder{GroupVersion: GroupVersion}).Register(&Shop{}, &ShopList{})
