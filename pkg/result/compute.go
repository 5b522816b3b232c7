// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/types"
)

// Outcome is the result of a reconcile, in one word.
type Outcome string

const (
	// Succeeded means that everything is as it should be.
	Succeeded Outcome = "Succeeded"
	// Requeued means that the reconcile is not finished and goes on soon.
	Requeued Outcome = "Requeued"
	// Finished means that there was nothing to do and nothing is to come.
	Finished Outcome = "Finished"
	// Stalled means that a user has to change something first.
	Stalled Outcome = "Stalled"
	// Waited means that the object is reconciled again after a delay.
	Waited Outcome = "Waited"
	// Ignored means that an error was declared to be none.
	Ignored Outcome = "Ignored"
	// Failed means that an error is returned to the controller.
	Failed Outcome = "Failed"
)

// Effect is the effect on a condition.
type Effect string

const (
	// Keep leaves the condition as it is.
	Keep Effect = "Keep"
	// Remove removes the condition.
	Remove Effect = "Remove"
	// Mark sets the condition to True with the verdict's reason and message.
	Mark Effect = "Mark"
)

// Verdict is all that follows from a result and an error.
type Verdict struct {
	// Outcome is the verdict in one word.
	Outcome Outcome
	// Result and Err are the results of Reconcile. If there is an error, the result is empty,
	// because the controller would ignore it. Err is never a reconcile.TerminalError, which would
	// be final.
	Result reconcile.Result
	Err    error
	// Reason and Message come from the error, or from the outcome.
	Reason, Message string
	// Reconciling and Stalled are the effects on these conditions.
	Reconciling, Stalled Effect
	// Observed reports whether the current generation was dealt with.
	Observed bool
	// Announced: an event about the reconcile was sent. The change of Ready needs no event of its own.
	Announced bool
}

// defaultReasons apply where an error brings none.
var defaultReasons = map[Outcome]string{
	Succeeded: vocabulary.ReasonReady,
	Ignored:   vocabulary.ReasonReady,
	Requeued:  vocabulary.ReasonProcessing,
	Waited:    vocabulary.ReasonRetrying,
	Stalled:   v1alpha1.ConditionStalled,
	Failed:    vocabulary.ReasonError,
}

// Compute is the truth table of the package. It is pure. A nil builder always answers with the
// empty result.
func Compute(result Result, err error, builder RuntimeResultBuilder) Verdict {
	if err == nil {
		return computeResult(result, builder)
	}
	cause := mostUrgent(err, builder)
	v := Verdict{
		Outcome:     cause.outcome,
		Reason:      cmp.Or(cause.reason, defaultReasons[cause.outcome]),
		Message:     err.Error(),
		Reconciling: Keep,
		Stalled:     Remove,
	}
	switch cause.outcome {
	case Stalled:
		v.Result = build(builder, Empty, NewStalling(err, v.Reason))
		v.Reconciling, v.Stalled, v.Observed = Remove, Mark, true
	case Waited:
		v.Result = waitingResult(NewWaiting(err, v.Reason, cause.delay), builder)
	case Ignored:
		v.Result = build(builder, Success, nil)
		v.Reconciling, v.Observed = Remove, true
	default:
		v.Err = backoff.Retried(err)
	}
	return v
}

func computeResult(result Result, builder RuntimeResultBuilder) Verdict {
	v := Verdict{Outcome: Finished, Result: build(builder, result, nil), Reconciling: Keep, Stalled: Remove, Observed: true}
	switch result {
	case Success:
		v.Outcome, v.Reconciling = Succeeded, Remove
	case Requeue:
		v.Outcome, v.Observed = Requeued, false
	}
	v.Reason = defaultReasons[v.Outcome]
	return v
}

// waitingResult never answers with the empty result: nothing else would bring
// the object back.
func waitingResult(err *Waiting, builder RuntimeResultBuilder) reconcile.Result {
	if built := build(builder, Empty, err); !built.IsZero() {
		return built
	}
	return after(cmp.Or(max(err.RequeueAfter, 0), fallbackDelay))
}

func build(builder RuntimeResultBuilder, result Result, err error) reconcile.Result {
	if builder == nil {
		return reconcile.Result{}
	}
	return builder.BuildRuntimeResult(result, err)
}

// part is one independent error of a reconcile, classified.
type part struct {
	outcome Outcome
	reason  string
	delay   time.Duration // Waited only; not positive: the builder's interval
}

// urgency orders outcomes by how soon the object has to be reconciled again.
var urgency = map[Outcome]int{Ignored: 1, Stalled: 2, Waited: 3, Failed: 4}

// mostUrgent picks the part of err that decides. Among several waits the shortest delay decides;
// the builder decides about a wait without a delay.
func mostUrgent(err error, builder RuntimeResultBuilder) part {
	var chosen part
	for _, p := range parts(err) {
		if p.outcome == Waited && p.delay <= 0 {
			p.delay = interval(builder)
		}
		sooner := p.outcome == Waited && p.delay > 0 && (chosen.delay <= 0 || p.delay < chosen.delay)
		if u, v := urgency[p.outcome], urgency[chosen.outcome]; u > v || u == v && sooner {
			chosen = p
		}
	}
	return chosen
}

// interval is the delay that follows a success.
func interval(builder RuntimeResultBuilder) time.Duration {
	return build(builder, Success, nil).RequeueAfter
}

// parts splits joined errors, and classifies each by its outermost context.
func parts(err error) []part {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if p, ok := contextOf(e); ok {
			return []part{p}
		}
		if branches := branchesOf(e); len(branches) > 0 {
			var all []part
			for _, branch := range branches {
				all = append(all, parts(branch)...)
			}
			return all
		}
	}
	if errors.Is(err, reconcile.TerminalError(nil)) {
		// The controller would never come back to it.
		return []part{{outcome: Stalled}}
	}
	return []part{{outcome: Failed}}
}

// contextOf looks at this very error. It does not look further down, where errors.As would find
// context in one branch and overlook the other branches.
func contextOf(err error) (part, bool) {
	if c, ok := err.(interface{ context() part }); ok { // also an error that embeds one of ours
		return c.context(), true
	}
	if r, ok := err.(*types.RetriableError); ok {
		return retriable(value(r)), true
	}
	if r, ok := err.(types.RetriableError); ok {
		return retriable(r), true
	}
	return part{}, false
}

func (e *Stalling) context() part { return part{outcome: Stalled, reason: value(e).Reason} }
func (e *Event) context() part    { return part{outcome: Failed, reason: value(e).Reason} }

func (e *Waiting) context() part {
	return part{outcome: Waited, reason: value(e).Reason, delay: value(e).RequeueAfter}
}

func (e *Generic) context() part {
	outcome := Failed
	if value(e).Ignore {
		outcome = Ignored
	}
	return part{outcome: outcome, reason: value(e).Reason}
}

func retriable(err types.RetriableError) part {
	p := part{outcome: Waited, reason: vocabulary.ReasonRetrying}
	if d := err.RetryAfter(); d != nil {
		p.delay = *d
	}
	return p
}

// branchesOf returns the errors that err joins, or nothing. A branch that is nil does not count.
func branchesOf(err error) []error {
	var branches []error
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		branches = joined.Unwrap()
	} else if aggregate, ok := err.(interface{ Errors() []error }); ok {
		branches = aggregate.Errors()
	}
	return slices.DeleteFunc(slices.Clone(branches), func(branch error) bool { return branch == nil })
}
