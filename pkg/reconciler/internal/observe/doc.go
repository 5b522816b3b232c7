// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package observe tells the planner what exists in the cluster: from watches, as
// far as they know, and else by reads. It reduces each object to a plan.Observation
// and keeps nothing else of it.
//
// An observation has four values. Present is what the server answered. Absent
// needs proof: the server says that there is no object of this name, or that the
// type is gone for good and all its objects with it. Everything else, such as a
// timeout, a missing permission or a type that is not served at the moment, is
// Unknown and says why; the planner never deletes or forgets because of it. NotFetched
// is said, if the caller wants it so, of a wanted object that nobody knows anything of.
//
// [Observer.Of] is also how the answers to our own writes are judged, so that
// the planner cannot tell a read from a write.
package observe
