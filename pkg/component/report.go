// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/redact"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
)

// report writes the verdict about the reconcile into the status, the events and the log.
func (h *handler[T]) report(ctx context.Context, obj T, outcome lifecycle.Outcome) result.Verdict {
	stateBefore, reasonBefore, _ := obj.GetStatus().GetState()
	secrets := redact.From(ctx)
	v := verdict.Judge(h.certainFacts(obj, outcome, secrets))
	h.setVerdict(obj, v, outcome.Now)
	h.logVerdict(ctx, obj, v, reasonBefore)
	hideIn(obj.GetStatus(), secrets)
	h.telemetry.judged(ctx, obj, h.dependents(obj))
	switch {
	case v.State == StateReady:
		h.tell(ctx, obj, applying)
		h.logTransition(ctx, obj, h.became(obj, stateBefore, reasonBefore))
	case v.State == stateBefore && v.Reason == reasonBefore:
		// No transition, so no event: what is to be told is told at the next one.
	case !obj.GetDeletionTimestamp().IsZero():
		h.tell(ctx, obj, deleting)
	default:
		h.tell(ctx, obj, applying)
	}
	return v.Result()
}

// certainFacts are the facts also of a component whose own methods panic: then that is
// the verdict, whatever else happened.
func (h *handler[T]) certainFacts(obj T, outcome lifecycle.Outcome, secrets *redact.Secrets) (f verdict.Facts) {
	defer func() {
		if value := recover(); value != nil {
			err := outcome.Err
			if _, known := errors.AsType[*lifecycle.PanicError](err); !known {
				err = fmt.Errorf("a method of the component panicked: %v", value)
			}
			f = verdict.Facts{Deleting: !obj.GetDeletionTimestamp().IsZero(), Intervals: defaultIntervals, Err: err, Secrets: secrets}
		}
	}()
	return h.factsOf(obj, outcome, secrets)
}

// factsOf collects what the verdict depends on.
func (h *handler[T]) factsOf(obj T, outcome lifecycle.Outcome, secrets *redact.Secrets) verdict.Facts {
	var f verdict.Facts
	unfinished, isUnfinished := errors.AsType[*verdict.UnfinishedError](outcome.Err)
	if isUnfinished {
		f = unfinished.Facts
		f.Waiting, f.Blocked, f.Unreachable = secrets.Text(f.Waiting), secrets.Text(f.Blocked), secrets.Text(f.Unreachable)
	}
	f.Secrets, f.Said, f.Deleting = secrets, said(obj.GetStatus()), !obj.GetDeletionTimestamp().IsZero()
	f.Intervals, f.Random = h.intervals(obj), backoff.Random
	switch {
	case isUnfinished && f.Err != nil:
		f.Err = outcome.Err // which may say more than its cause, such as that the definition is outdated
	case isUnfinished:
	case outcome.Err != nil:
		f.Err = outcome.Err
	case outcome.Phase == lifecycle.PhaseSkip:
		f.Skipped = skipOf(outcome)
	case outcome.Phase == lifecycle.PhaseClaim && outcome.Result != result.Success:
		f.Claimed = true
	case f.Deleting:
		f.Done = "nothing is left"
	default:
		settled, total, _ := strings.Cut(obj.GetStatus().Progress, "/")
		f.Done = fmt.Sprintf("%s of %s dependent objects are ready", settled, total)
		for _, notice := range h.remembered(obj).rendering.notices() {
			f.Done += "; " + notice
		}
	}
	known := h.remembered(obj)
	if f.Err != nil && verdict.IsForbidden(f.Err) {
		f.Err = h.nameImpersonation(obj, f.Err)
		// The dependents have no chance to become ready, so the timeout goes on afterwards.
		if passed, running := obj.GetStatus().stopTimeout(outcome.Now); running {
			known.timeoutPassed = passed
		}
		if f.Net == 0 {
			f.Net = known.idle.Idle()
		}
	}
	if f.Waiting != "" && !f.Deleting {
		obj.GetStatus().startTimeout(outcome.Now, known.timeoutPassed)
		known.timeoutPassed = 0
		f.TimedOut = obj.GetStatus().timedOut(f.Intervals.Timeout, outcome.Now)
	}
	return f
}

// skipOf says why the dependents were left alone in a reconcile that did so.
func skipOf(outcome lifecycle.Outcome) verdict.Skip {
	if outcome.Policy == lifecycle.Skip {
		return verdict.SkippedByPolicy
	}
	return verdict.SkippedBySpec
}

func said(status *Status) string {
	_, _, message := status.GetState()
	return message
}

// hideIn keeps secrets out of conditions that hooks wrote.
func hideIn(status *Status, secrets *redact.Secrets) {
	for i := range status.Conditions {
		status.Conditions[i].Message = secrets.Text(status.Conditions[i].Message)
	}
}

// setVerdict brings state and conditions in line with the verdict.
func (h *handler[T]) setVerdict(obj T, v verdict.Verdict, now time.Time) {
	obj.GetStatus().State = v.State
	v.SetConditions(conditionsOf(obj), now)
}

// intervals returns the intervals of the component. Light reconciles do not put off the
// next full one.
func (h *handler[T]) intervals(obj T) verdict.Intervals {
	all := intervalsOf(obj)
	if due, known := h.memory.dueIn(client.ObjectKeyFromObject(obj), h.now()); known {
		all.Requeue = min(all.Requeue, due)
	}
	return all
}

// tell sends what is to be told about the component, and logs it.
func (h *handler[T]) tell(ctx context.Context, obj T, what doing) {
	known := h.remembered(obj)
	told := known.untold
	known.untold = tally{}
	h.send(obj, what, told)
	known.unlogged.add(told)
	h.logNotes(ctx, obj, told)
}

// minNet is the shortest delay between two passes that wait.
const minNet = 50 * time.Millisecond

// net is when a component comes again that waits: later and later as long as
// nothing moves, but no later than an object settles by itself.
func (h *handler[T]) net(known *remembered, waits []reconciler.Wait) time.Duration {
	net := known.idle.Idle()
	now := h.now()
	if len(waits) > 0 && !slices.ContainsFunc(waits, func(wait reconciler.Wait) bool { return wait.Reason != reconciler.WaitConflict }) {
		net = defaultRequeueInterval // nothing moves before the time of the next correction
	}
	if next := verdict.NextChange(waits); !next.IsZero() {
		net = min(net, max(next.Sub(now), minNet))
	}
	return net
}
