// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package observe gives the planner the state of the cluster: from watches, as far as they know it,
// and else by reads. It reduces each object to a plan.Observation and keeps nothing else of it.
//
// An observation has four values. Present is an object in an answer of the server. Absent needs
// proof: the server answers that there is no object of this name, or that the type is gone for good
// and all its objects with it. Everything else, such as a timeout, a missing permission or a type
// that is not served at the moment, is Unknown, with a reason; the planner never deletes an object
// or drops its record because of it. NotFetched is, if the caller asks for it, a desired object
// that no watch and no record knows.
//
// [Observer.ObservationOf] reduces the answers to our own writes, too, so that they are for the
// planner the same as reads.
package observe
