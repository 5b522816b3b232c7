// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package types

import "k8s.io/apimachinery/pkg/runtime"

// SchemeBuilder adds types to a scheme. Generators may implement it to make
// their types known to the client of the target cluster.
type SchemeBuilder interface {
	// AddToScheme adds the types to the scheme.
	AddToScheme(scheme *runtime.Scheme) error
}
