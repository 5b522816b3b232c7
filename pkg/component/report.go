// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/redact"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/result"
)

// report writes the verdict about the reconcile into the status, the events and the log.
func (h *handler[T]) report(ctx context.Context, obj T, outcome lifecycle.Outcome) result.Verdict {
	stateBefore, reasonBefore, _ := obj.GetStatus().GetState()
	secrets := redact.From(ctx)
	v := judge(h.certainFacts(obj, outcome, secrets))
	h.write(obj, v, outcome.Now)
	h.logVerdict(ctx, obj, v, reasonBefore)
	hideIn(obj.GetStatus(), secrets)
	h.telemetry.judged(ctx, obj, h.dependents(obj))
	switch {
	case v.state == StateReady:
		h.tell(ctx, obj, applying)
		h.logTransition(ctx, obj, h.became(obj, stateBefore, reasonBefore))
	case v.state == stateBefore && v.reason == reasonBefore:
		// No transition, so no event: what is to be told is told at the next one.
	case !obj.GetDeletionTimestamp().IsZero():
		h.tell(ctx, obj, deleting)
	default:
		h.tell(ctx, obj, applying)
	}
	return v.returned()
}

// certainFacts are the facts also of a component whose own methods panic: then that is
// the verdict, whatever else happened.
func (h *handler[T]) certainFacts(obj T, outcome lifecycle.Outcome, secrets *redact.Secrets) (f facts) {
	defer func() {
		if value := recover(); value != nil {
			err := outcome.Err
			if _, known := errors.AsType[*lifecycle.PanicError](err); !known {
				err = fmt.Errorf("a method of the component panicked: %v", value)
			}
			f = facts{deleting: !obj.GetDeletionTimestamp().IsZero(), intervals: defaultIntervals, err: err, secrets: secrets}
		}
	}()
	return h.factsOf(obj, outcome, secrets)
}

// factsOf collects what the verdict depends on.
func (h *handler[T]) factsOf(obj T, outcome lifecycle.Outcome, secrets *redact.Secrets) facts {
	var f facts
	unfinished, isUnfinished := errors.AsType[*unfinishedError](outcome.Err)
	if isUnfinished {
		f = unfinished.facts
		f.waiting, f.blocked, f.unreachable = secrets.Text(f.waiting), secrets.Text(f.blocked), secrets.Text(f.unreachable)
	}
	f.secrets, f.said, f.deleting = secrets, said(obj.GetStatus()), !obj.GetDeletionTimestamp().IsZero()
	f.intervals, f.random = h.intervals(obj), backoff.Random
	switch {
	case isUnfinished && f.err != nil:
		f.err = outcome.Err // which may say more than its cause, such as that the definition is outdated
	case isUnfinished:
	case outcome.Err != nil:
		f.err = outcome.Err
	case outcome.Phase == lifecycle.PhaseSkip:
		f.skipped = skipOf(outcome)
	case outcome.Phase == lifecycle.PhaseClaim && outcome.Result != result.Success:
		f.claimed = true
	case f.deleting:
		f.done = "nothing is left"
	default:
		settled, total, _ := strings.Cut(obj.GetStatus().Progress, "/")
		f.done = fmt.Sprintf("%s of %s dependent objects are ready", settled, total)
		for _, notice := range h.remembered(obj).rendering.notices() {
			f.done += "; " + notice
		}
	}
	known := h.remembered(obj)
	if f.err != nil && forbids(f.err) {
		f.err = h.nameImpersonation(obj, f.err)
		// The dependents have no chance to become ready, so the timeout goes on afterwards.
		if passed, running := obj.GetStatus().stopTimeout(outcome.Now); running {
			known.timeoutPassed = passed
		}
		if f.net == 0 {
			f.net = known.idle.Idle()
		}
	}
	if f.waiting != "" && !f.deleting {
		obj.GetStatus().startTimeout(outcome.Now, known.timeoutPassed)
		known.timeoutPassed = 0
		f.timedOut = obj.GetStatus().timedOut(f.intervals.timeout, outcome.Now)
	}
	return f
}

// skipOf says why the dependents were left alone in a reconcile that did so.
func skipOf(outcome lifecycle.Outcome) skip {
	if outcome.Policy == lifecycle.Skip {
		return skippedByPolicy
	}
	return skippedBySpec
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

// write brings state and conditions in line with the verdict.
func (h *handler[T]) write(obj T, v verdict, now time.Time) {
	obj.GetStatus().State = v.state
	setter := conditionsOf(obj)
	switch {
	case v.reconciling:
		conditions.MarkReconciling(setter, now, v.reason, "%s", v.message)
	case v.stalled:
		conditions.MarkStalled(setter, now, v.reason, "%s", v.message)
	default:
		conditions.Delete(setter, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled)
	}
	conditions.Set(setter, now, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: v.ready, Reason: v.reason, Message: v.message,
	})
}

// intervals returns the intervals of the component. Light reconciles do not put off the
// next full one.
func (h *handler[T]) intervals(obj T) intervals {
	all := intervalsOf(obj)
	if due, known := h.memory.dueIn(client.ObjectKeyFromObject(obj), h.now()); known {
		all.requeue = min(all.requeue, due)
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
