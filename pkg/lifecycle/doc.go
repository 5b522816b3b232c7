// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle is the loop that every reconciler of something outside the
// object needs: claim it, create or update it, delete it, or only look at it.
//
// A [Handler] does the domain's work in four idempotent methods. The [Loop] does
// the rest, once and right: it reads the object, decides about the stage of the
// pass by a pure function, puts the finalizer on the server before anything else
// happens and takes it away after everything is gone, contains panics, and leaves
// through pkg/summarize, which writes the status at most once.
//
//	object                                          stage    what happens
//	being deleted, without our finalizer            ignore   nothing
//	being deleted, and to be left as it is          release  the finalizer goes
//	being deleted                                   delete   Delete; on Success the finalizer goes
//	suspended                                       skip     UpdateStatus
//	without our finalizer                           claim    Claim and the finalizer made durable, then as apply
//	else                                            apply    Claim, CreateOrUpdate
//
// # Commit before acting
//
// A handler gets a [Commit]. It changes status in memory to say what it is about
// to do, calls Commit, and acts only if that returned nil. Then the intent survives
// a crash, and a pass that worked on an old object has done no harm.
//
// # What a handler may leave to the loop
//
// A handler that implements only Handler gets Ready, Reconciling and Stalled
// worded from its result and error (see pkg/result for errors that carry
// context). One that also implements [Judge] words them itself. [Suspender],
// [Detacher], [Builder] and [Finisher] are optional too.
package lifecycle
