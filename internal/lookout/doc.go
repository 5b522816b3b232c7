// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package lookout wakes those who wait for single objects when these change: the
// ConfigMaps and Secrets that a component refers to, an object that belongs to
// somebody else, a namespace that is being deleted, a type that is not served yet.
//
// A waiter says with each of its passes which objects it depends on, and which
// resourceVersion of each it saw. It is woken, once, when the server has another one:
// also if the object changed between the read of the pass and the start of the watch.
// What the pass saw wakes nobody.
//
// Only metadata is watched, so the data of a Secret never arrives here. The objects
// need no label. One object is watched by its name, which a role with resourceNames
// allows; many of a type in one namespace by one watch of the namespace, and many of a
// type in many namespaces by one watch of the cluster. While the wider watch is not
// there, or is not allowed, the narrower ones go on, as many as there may be.
//
// A watch that is refused is tried again later and later, and nobody waits for it: who
// depends on the object learns of the change in its next regular pass.
package lookout
