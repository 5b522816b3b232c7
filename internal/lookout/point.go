// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lookout

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Point is an object, or all objects of a type, that somebody waits for.
type Point struct {
	Type schema.GroupVersionResource
	// Namespace is empty for objects that live in none.
	Namespace string
	// Name is empty for all objects of the type in the namespace or, if that is
	// empty, too, everywhere. Whoever begins to wait for them is woken once when the
	// watch has begun, because nobody knows what happened before.
	Name string
	// Seen is the resourceVersion that the waiter saw; empty if the object was not
	// there. It says nothing if there is no Name.
	Seen string
	// Vanishing restricts what wakes to objects that have gone.
	Vanishing bool
}

// place is what one watch can show: an object, the objects of a type in a namespace,
// or all objects of a type.
type place struct {
	gvr             schema.GroupVersionResource
	namespace, name string
}

func (p Point) place() place { return place{p.Type, p.Namespace, p.Name} }

// whole tells whether the place holds all objects of a type in a namespace or everywhere.
func (p place) whole() bool { return p.name == "" }

// around are the places whose watch shows this one as well, and itself.
func (p place) around() []place {
	places := []place{p}
	if p.name != "" {
		places = append(places, place{p.gvr, p.namespace, ""})
	}
	if p.namespace != "" {
		places = append(places, place{p.gvr, "", ""})
	}
	return places
}

// object is the name of an object of a type.
type object struct{ namespace, name string }
