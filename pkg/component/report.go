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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/redact"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/result"
)

// Judge writes the verdict about the pass into the status.
func (h *handler[T]) Judge(ctx context.Context, obj T, pass lifecycle.Pass) (result.Result, error) {
	stateBefore, reasonBefore, _ := obj.GetStatus().GetState()
	secrets := redact.From(ctx)
	v := judge(h.certainFacts(obj, pass, secrets))
	h.write(obj, v, pass.Now)
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
	return v.result, v.err
}

// certainFacts are the facts also of a component whose own methods panic: then that is
// the verdict, whatever else happened.
func (h *handler[T]) certainFacts(obj T, pass lifecycle.Pass, secrets *redact.Secrets) (f facts) {
	defer func() {
		if value := recover(); value != nil {
			err := pass.Err
			if _, known := errors.AsType[*lifecycle.PanicError](err); !known {
				err = fmt.Errorf("a method of the component panicked: %v", value)
			}
			f = facts{deleting: !obj.GetDeletionTimestamp().IsZero(), intervals: defaultIntervals, err: err, secrets: secrets}
		}
	}()
	return h.factsOf(obj, pass, secrets)
}

// factsOf collects what the verdict depends on.
func (h *handler[T]) factsOf(obj T, pass lifecycle.Pass, secrets *redact.Secrets) facts {
	f := facts{
		secrets:   secrets,
		said:      said(obj.GetStatus()),
		deleting:  !obj.GetDeletionTimestamp().IsZero(),
		intervals: intervalsOf(obj),
	}
	unsettled, isUnsettled := errors.AsType[*unsettledError](pass.Err)
	blocked, isBlocked := errors.AsType[*blockedError](pass.Err)
	unreachable, isUnreachable := errors.AsType[*unreachableError](pass.Err)
	switch {
	case isBlocked:
		f.blocked, f.net = secrets.Text(blocked.message), blocked.net
	case isUnreachable:
		f.unreachable, f.net = secrets.Text(unreachable.Error()), unreachable.net
	case isUnsettled && unsettled.err == nil:
		f.waiting, f.failed, f.net = secrets.Text(unsettled.message), unsettled.failed, unsettled.net
	case isUnsettled:
		f.err, f.net = unsettled.err, unsettled.net
	case pass.Err != nil:
		f.err = pass.Err
	case pass.Stage == lifecycle.StageSkip:
		f.skipped = skipOf(pass)
	case pass.Stage == lifecycle.StageClaim && pass.Result != result.Success:
		f.claimed = true
	case f.deleting:
		f.done = "nothing is left"
	default:
		settled, total, _ := strings.Cut(obj.GetStatus().Progress, "/")
		f.done = fmt.Sprintf("%s of %s dependent objects are ready", settled, total)
		for _, notice := range h.renders.notices(client.ObjectKeyFromObject(obj)) {
			f.done += "; " + notice
		}
	}
	if f.err != nil && forbids(f.err) {
		f.err = h.nameImpersonation(obj, f.err)
		if f.net == 0 {
			f.net = h.activity.Next(client.ObjectKeyFromObject(obj))
		}
	}
	if f.waiting != "" && !f.deleting {
		obj.GetStatus().noteWaiting(pass.Now)
		f.timedOut = obj.GetStatus().timedOut(f.intervals.timeout, pass.Now)
	}
	return f
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

// ResultBuilder says when the component comes again.
func (h *handler[T]) ResultBuilder(obj T) result.RuntimeResultBuilder {
	requeue := intervalsOf(obj).requeue
	if due, known := h.lately.dueIn(client.ObjectKeyFromObject(obj), h.now()); known {
		requeue = min(requeue, due) // light passes do not put it off
	}
	return pace{requeue: requeue, random: backoff.Random}
}

// pace spreads the regular passes of many components a little, so that they do
// not stay in step forever after a restart.
type pace struct {
	requeue time.Duration
	random  func() float64
}

// jitter is the greatest share by which a regular pass comes early.
const jitter = 0.1

// BuildRuntimeResult implements result.RuntimeResultBuilder.
func (b pace) BuildRuntimeResult(res result.Result, err error) ctrl.Result {
	early := time.Duration(float64(b.requeue) * jitter * b.random())
	built := result.AlwaysRequeueResultBuilder{RequeueAfter: b.requeue - early}.BuildRuntimeResult(res, err)
	if soon, ok := errors.AsType[*soonerError](err); ok && built.RequeueAfter > soon.after {
		built.RequeueAfter = soon.after
	}
	return built
}

// tell sends what is to be told about the component, and logs it.
func (h *handler[T]) tell(ctx context.Context, obj T, what doing) {
	key := client.ObjectKeyFromObject(obj)
	told := h.tallies.take(key)
	h.send(obj, what, told)
	h.journal.of(key).add(told)
	h.logNotes(ctx, obj, told)
}
