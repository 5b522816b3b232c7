// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Objects are the ConfigMaps that a subject works on: N of them, with a value
// that all have, and one that only the first has.
type Objects struct {
	Prefix   string
	N        int
	All, One string
	// Chart is the version of a chart. With it, the objects are those of N charts, and All is their cpu.
	Chart string `json:",omitempty"`
}

// Name is the name of an object.
func (o Objects) Name(i int) string { return fmt.Sprintf("%s-%d", o.Prefix, i) }

// Unstructured returns the objects, without a namespace if that is empty.
func (o Objects) Unstructured(namespace string) []*unstructured.Unstructured {
	objects := make([]*unstructured.Unstructured, 0, o.N)
	for i := range o.N {
		if o.Chart != "" {
			objects = append(objects, Chart(o.Name(i), o.All, o.Chart)...)
		}
	}
	if o.Chart != "" {
		for _, object := range objects {
			object.SetNamespace(namespace)
		}
		return objects
	}
	for i := range o.N {
		data := map[string]any{"all": o.All}
		if i == 0 {
			data["one"] = o.One
		}
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": o.Name(i)},
			"data":     data,
		}}
		if namespace != "" {
			object.SetNamespace(namespace)
		}
		objects = append(objects, object)
	}
	return objects
}
