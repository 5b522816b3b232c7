// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle serves reconcilers of a resource outside the object: they claim it, create or
// update it, delete it, or only look at it.
//
// A [Handler] does the domain's work in four idempotent methods. The [Reconciler] does the rest,
// once and right: it reads the object, finds out to which operator it belongs and which management
// policy it has, decides about the phase of the reconcile by a pure function, puts the finalizer on
// the server before anything else happens and takes it away after everything is gone, contains
// panics, and leaves through pkg/summarize, which writes the status at most once.
// [SetupWithManager] runs it in a controller. For resources behind an API that can observe, create,
// update and delete them, package external has the Handler.
//
//	object                                          phase    what happens
//	of another operator                             ignore   nothing
//	being deleted, without our finalizer            ignore   nothing
//	being deleted, its resource is orphaned         finalize the finalizer goes
//	with an unknown management policy               paused   nothing; the conditions say why
//	being deleted                                   delete   Delete; on Success the finalizer goes
//	suspended, or under the policy skip             skip     UpdateStatus
//	without our finalizer                           claim    Claim and the finalizer made durable, then as apply
//	else                                            apply    Claim, CreateOrUpdate
//
// # Commit before acting
//
// A handler gets a [Commit]. It records its intention in the status in memory, calls Commit, and
// acts only if that returned nil. Then the intent survives a crash, and a reconcile that worked on
// an old object has done no harm.
//
// # Management policy
//
// The annotation <name>/management-policy of an object, or else of its namespace, or else the
// option is one of: manage, skip (only look, and leave everything behind), or detach-on-delete (do
// everything but delete). A value that does not exist might have been meant to prevent a deletion,
// so nothing is done until it is corrected, and Ready reports that. A change of a namespace's
// annotation makes its objects reconcile.
//
// With the option OperatorNamespace, several operators share the objects of one kind:
// each object belongs to the operator in the namespace that its annotation
// <name>/operator-namespace names, which is written together with the finalizer.
//
// # Errors
//
// A result.Error decides how bad it is and when the object is requeued:
//
//	severity  Ready    also         returned  requeued, by default
//	Info      Unknown  Reconciling  no        fast: 1 s, doubling up to 30 s
//	Warning   False    Reconciling  yes       slow: 5 s, doubling up to 3 min
//	Error     False    Stalled      no        very slow: at the requeue interval
//
// The other contextual errors of pkg/result work as well, and any other error requeues the object
// after 200 ms, doubling up to two minutes. No outcome is final: the object is requeued after the
// requeue interval at the latest (only one that its handler calls suspended waits for a change),
// and an object that makes no progress can always be deleted, by correcting the mistake or by the
// policy detach-on-delete.
//
// # More than a handler can say
//
// Ready, Reconciling and Stalled are worded from the result and the error of the handler.
// [Suspender], [Orphaner], [Finalizer] and [Forgetter] are optional.
package lifecycle
