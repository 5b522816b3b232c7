// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/untyped"
)

// ToUnstructuredList returns the objects as maps, with apiVersion and kind, which are known for the types
// of the Kubernetes API even if an object does not hold them. The error names all objects that cannot be converted.
func ToUnstructuredList(objects []client.Object) ([]*unstructured.Unstructured, error) {
	return untyped.List(objects, scheme.Scheme)
}

// ToObjects returns the maps as objects.
func ToObjects(list []*unstructured.Unstructured) []client.Object {
	objects := make([]client.Object, len(list))
	for i, u := range list {
		objects[i] = u
	}
	return objects
}

// Name returns how errors call an object.
func Name(u *unstructured.Unstructured) string {
	return report.Key{Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}.String()
}
