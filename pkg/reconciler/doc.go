// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package reconciler is the engine: it brings a set of objects into a cluster
// and removes it again, in order, under policies, and with a record that
// survives a crash at any point. It can be used without a component.
//
// One call of Apply goes through four steps, each a package of its own below
// internal, until nothing more can be done without waiting:
//
//	desired  the given objects become valid, resolved manifests, or one error lists all mistakes
//	observe  what exists is known from watches, or read; what cannot be read is unknown, not absent
//	plan     pure: desired, recorded and live state give the next steps and the record to keep
//	execute  the steps are written, each with the uid and resourceVersion that the plan saw
//
// The record is the inventory. It is made durable, by the function Record of the
// request, before an object that it does not contain is written. So a crash
// between any two requests loses nothing: the next call finds in the inventory
// what may exist, and on the objects themselves which owner they have.
//
// Delete is Apply without desired objects: the same planner, the same executor.
package reconciler
