// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package result describes the result of a reconcile, in one abstract value and one contextual
// error, and computes everything else from these two.
//
// A reconciler that decides by itself about conditions, the requeue and the
// returned error gets them to contradict each other sooner or later. So the code
// that does the work returns only a [Result] (Success, Requeue, Empty) and an
// error, which may carry context: [Stalling] (no retry helps until a user changes
// something), [Waiting] (retry after a while, nothing has failed), [Generic]
// (an ordinary failure, or one to be ignored), [Event] (an ordinary failure). A
// types.RetriableError is a Waiting. The Reconciler of pkg/lifecycle also knows [Error], which
// has a severity and a class of retries, and [RequeueError], which ends a reconcile without a verdict.
//
// [Compute] is the truth table. It is pure; the meaning of "success" in time comes from a
// [RuntimeResultBuilder]: [AlwaysRequeueResultBuilder] for "again in ten minutes",
// [EventDrivenResultBuilder] for "when something happens".
//
// # The truth table
//
//	error               Result   requeue            returned  Reconciling  Stalled  observed
//	nil                 Success  builder            nil       remove       remove   yes
//	nil                 Requeue  builder            nil       keep         remove   no
//	nil                 Empty    builder (none)     nil       keep         remove   yes
//	Stalling            any      builder (interval) nil       remove       mark     yes
//	Waiting, d > 0      any      builder (d)        nil       keep         remove   no
//	Waiting, no delay   any      builder (interval) nil       keep         remove   no
//	Generic, ignored    any      as after success   nil       remove       remove   yes
//	any other           any      rate limiter       error     keep         remove   no
//
// An error overrules the Result. Errors are found through any wrapping; the
// outermost context counts. Several errors joined are as urgent as the most
// urgent of them, in the order of the last lines, upwards: an ordinary error
// must not wait for the interval because another object happens to be stalled.
//
// With AlwaysRequeueResultBuilder no outcome is final: a stalled object is reconciled again after
// the interval. With another builder the object is reconciled again when the builder decides so, or
// after an event. A Waiting never gets lost, whatever the builder answers. A
// reconcile.TerminalError alone is a Stalling. Beside other errors, or within an ordinary failure,
// the failure counts, and it is returned in a form that the controller tries again.
//
// # Differences from Flux
//
// The model is documented by Flux for its controllers. Different on purpose:
//
//   - An error overrules the Result. There, a Stalling beside another Result than Empty is
//     returned as an ordinary error, and Stalled stays as it was.
//   - Context is found through wrapping, and in joined errors. There, a wrapped Stalling or
//     Waiting is an ordinary error.
//   - A Waiting without a delay is reconciled again. In the documented model it is lost.
//   - A stalled object is reconciled again after the interval. There, only a change brings it back.
//   - Requeue is a short delay. There, it is the field Requeue, which is deprecated.
//   - Beside an error the result is empty, because the controller ignores it.
package result
