// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package reconciler is the engine: it brings a set of objects into a cluster and removes it again,
// in order, under policies, and with a record that survives a crash at any point. It can be used
// without a component.
//
// One call of Apply goes through four steps, each a package of its own below internal, until
// nothing more can be done without waiting:
//
//	desired  the given objects become valid, resolved manifests, or one error lists all mistakes
//	observe  live objects are known from watches, or read; an unreadable object is unknown, not absent
//	plan     pure: desired, recorded and live state give the next steps and the record to store
//	execute  the steps are written, each with the uid and resourceVersion that the plan saw
//
// The record is the inventory. The function Record of the request makes it durable before an object
// that it does not contain is written. So a crash between any two requests loses nothing: the next
// call finds in the inventory which objects may exist, and on the objects themselves which owner
// they have.
//
// Delete is Apply without desired objects: the same planner, the same executor.
package reconciler
