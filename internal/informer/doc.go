// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package informer has a Reflector, which keeps up with the objects of one type and scope, and a
// Manager, which notifies owners when single objects that they depend on change: the ConfigMaps and
// Secrets that a component refers to, an object that belongs to another owner, a namespace that is
// being deleted, a type that is not served yet.
//
// With each reconcile an owner tells which objects it depends on, and which resourceVersion of each
// it saw. It is notified, once, when the server has another one: also if the object changed between
// the read of the reconcile and the start of the watch. Versions that the reconcile saw notify no
// owner.
//
// The Manager watches only metadata, so the data of a Secret never arrives here. The objects need
// no label. One object is watched by its name, which a role with resourceNames allows; many of a
// type in one namespace by one watch of the namespace, and many of a type in many namespaces by one
// watch of the cluster. While the wider watch is not there, or is not allowed, the narrower ones go
// on, as many as there may be.
//
// A watch that is refused is tried again with growing delays, and no owner is held up by it: the
// next regular reconcile sees the change.
package informer
