// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package report

import "k8s.io/apimachinery/pkg/runtime/schema"

// Blocker is an object that blocks the deletion of a component.
type Blocker struct {
	// Dependent names the object that cannot be deleted, such as
	// "CustomResourceDefinition foos.example.com", or the pattern of a type.
	Dependent string
	// Key is the object; it is empty for the pattern of a type.
	Key Key
	// Message describes the blockers, naming the first few objects and how many there are.
	Message string
	// Awaited are the objects that have to be gone, by type, as far as the types are known.
	Awaited []AwaitedObject
}

// AwaitedObject is an object of another owner, or all objects of a type, that an owner depends
// on: it is waited for, or ignored until it is gone.
type AwaitedObject struct {
	Type schema.GroupVersionResource
	// Kind is set if the type itself is awaited, because the server does not serve it. The type has no resource then.
	Kind string
	// Namespace is empty for objects that live in none.
	Namespace string
	// Name is empty if all objects of the type are meant, in the namespace or, without
	// one, everywhere.
	Name string
	// ResourceVersion is the resourceVersion of the object when it was read; empty if it did not exist,
	// or is not known. It has no meaning if there is no Name.
	ResourceVersion string
	// DeletionOnly: nothing but the deletion of an object makes a difference.
	DeletionOnly bool
}
