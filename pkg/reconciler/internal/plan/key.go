// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
)

// These types are reported as they are. A key has no version: the same object can be read through
// every version that is served.
type (
	Key       = report.Key
	Wait      = report.Wait
	Note      = report.Note
	Deviation = report.Deviation
)

// KeyOf returns the key of a recorded object.
func KeyOf(item v1alpha1.InventoryItem) Key {
	return Key{Group: item.Group, Kind: item.Kind, Namespace: item.Namespace, Name: item.Name}
}

func withoutGroup(k Key) Key {
	k.Group = ""
	return k
}

// HasForeignFinalizer reports whether a definition or an APIService has the finalizer of SAP
// component-operator-runtime for the types of the reconciler. It is not used here, and would hold
// the object for ever.
func HasForeignFinalizer(k Key, reconciler string, finalizers []string) bool {
	types := k.GroupKind() == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"} ||
		k.GroupKind() == schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
	return types && slices.Contains(finalizers, reconciler)
}

func namespaceKey(name string) Key { return Key{Kind: "Namespace", Name: name} }

func isNamespace(k Key) bool { return k.Group == "" && k.Kind == "Namespace" }

// referenceTo returns the form in which the record keeps a key.
func referenceTo(k Key) string {
	return strings.Join([]string{k.Group, k.Kind, k.Namespace, k.Name}, "/")
}

// parseReference reads the output of referenceTo; any other text gives the key of no object.
func parseReference(reference string) Key {
	parts := strings.Split(reference, "/")
	if len(parts) != 4 {
		return Key{}
	}
	return Key{Group: parts[0], Kind: parts[1], Namespace: parts[2], Name: parts[3]}
}

// Equivalents are the recorded objects by their keys without the group.
type Equivalents map[Key][]Key

// EquivalentsOf indexes the recorded items.
func EquivalentsOf(recorded []v1alpha1.InventoryItem) Equivalents {
	keys := Equivalents{}
	for _, item := range recorded {
		key := KeyOf(item)
		keys[withoutGroup(key)] = append(keys[withoutGroup(key)], key)
	}
	return keys
}

// Has reports whether an object of the same kind and name is recorded in another group.
// It may be the very object, so it must not be assumed that the object does not exist.
func (t Equivalents) Has(key Key) bool {
	return slices.ContainsFunc(t[withoutGroup(key)], func(other Key) bool { return other != key })
}
