// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package steps keeps the steps of a reconciliation as conditions of the object, and runs
// the work of a step under a lock.
//
// It is for actions that cannot simply be repeated: the creation of something outside the cluster,
// which costs money, or has no name to be found by. A reconcile that works on an old state of the
// object, because the cache is behind, would do it twice, and notice that only afterwards, when its
// status write is refused. A [Lock] reverses the order: the status is written first, with the
// object's resourceVersion as precondition, so an old state fails before the work starts.
//
// # Conditions
//
// [Conditions] is a field of the object's status of its own, such as status.steps. It must not be
// status.conditions: other tools expect the statuses True, False and Unknown there.
// [Conditions.ToMeta] is the view for them. A step has a type, a status ([ConditionInitialized],
// [ConditionCreated], [ConditionCompleted], [ConditionTerminating], [ConditionTerminated],
// [ConditionError], [ConditionLocked], or one of your own) and a reason.
//
// # The lock
//
// [NewLock] and [Lock.Execute] bring a step from its status to Locked, run the task, and write the
// condition that it returns, together with its changes of the status. That is one request before
// and one after the task; both need the verb patch on the status, and get on the object. Status
// fields that the Go type does not know stay. Inside a reconcile of pkg/lifecycle, or wherever a
// patch.Helper writes the object, [WithCommit] leaves the writing to it. The record of the lock
// holds its process, since when and for how long it holds the lock, and the condition before. So a
// lock always ends:
//
//   - The task returns an error, panics, forgets to set a status, or returns the condition of
//     another step: the condition becomes Error. A reason that is too long is cut.
//   - The error is transient, or the context ends: the condition is restored.
//   - Another client writes the object meanwhile: both changes stay.
//   - The server refuses the task's changes of the status: the condition becomes Error.
//   - The process dies: another one takes over when the lease ends, its successor
//     (see [WithHolder]) at once. The task sees the condition as it was before.
//   - The release does not reach the server: this process knows that no task is at work, and
//     its next reconcile takes over at once.
//   - The clock of a holder is wrong: the lease then starts now, not in the future.
//
// # Limits of a lock
//
// The API server protects its own records and nothing else. After a crash between the work and its
// record, the task runs again; and a process that stands still for longer than its lease in the
// middle of a request to another system may finish that request later. Give the system
// [Lock.IdempotencyKey], or look for a result that may be there already. The key is on record in
// the lock and, after an attempt that ended in Error, in the condition, so that the next one has
// the same.
//
// # Differences from konditions
//
// The API equals package konditions of github.com/pier-oliviert/konditionner, which this package
// replaces by a change of the import. Different on purpose:
//
//   - A lock has a holder and a lease; there, a lock stays for ever after a crash of its holder.
//   - The release survives conflicts, the end of the context, panics, and any result of the task.
//   - The errors of API server and task are joined; there, the former hides the latter.
//   - A transient error does not make the condition Error, which is permanent.
//   - A method Conditions with a value receiver, which its documentation shows, writes into a
//     copy and locks nothing; here it is NotInitializedConditionsErr.
//   - The steps must not be in status.conditions.
//   - SetCondition sets the time of a transition, also for a condition that was found before; and
//     returns an error for a value that the API server would refuse.
//   - Lock.Condition stays the condition at the creation of the lock, after Execute, too.
package steps
