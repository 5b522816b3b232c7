// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import "k8s.io/apimachinery/pkg/runtime/schema"

// Obstacle is a type whose objects are in the way of a deletion: when some of them
// have gone, it may be tried again.
type Obstacle struct {
	Type schema.GroupVersionResource
	// Namespace is where the objects live that are meant; empty means everywhere.
	Namespace string
}

// Result is what became of one step.
type Result struct {
	Step Step
	// Observation is what is known about the object afterwards: the object as
	// the server answered, Absent if a deletion was answered as completed, or
	// Unknown if the outcome is not known.
	Observation Observation
	// Blocked is why the guard of a deletion refused it; nothing was done then.
	Blocked string
	// Obstacles are whose objects are in the way of a deletion that is blocked.
	Obstacles []Obstacle
	// Unread is set if the guard could not find out whether a namespace is empty,
	// because some of its content cannot be read.
	Unread bool
	// Released is set if our marks were stripped instead of deleting the object.
	Released bool
	// Replicas is the number of replicas that the manifest asks for, of an object that
	// can be scaled; nil if it asks for none.
	Replicas *int64
	// Notes are what the step found that is worth telling, whatever its outcome.
	Notes []Note
	// Err is why the step failed. It names the object.
	Err error
}
