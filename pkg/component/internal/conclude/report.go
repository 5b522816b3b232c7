// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conclude

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
)

// Findings are what other steps of a reconcile have found that is reported.
type Findings struct {
	// NextFull is when the next full reconcile is due; zero if that is not known.
	NextFull time.Time
	// Notices are about the rendering.
	Notices []string
	// Turn says why the component keeps its version; empty if it does not.
	Turn string
	// Dependents counts the dependents by phase.
	Dependents map[string]int
	// NoteTurn notes for the roll-out what became of the component. It runs once the status has the verdict.
	NoteTurn func()
}

// requeue returns the requeue interval of a component: the fast path does not put off the next full reconcile.
func (f Findings) requeue(interval time.Duration, now time.Time) time.Duration {
	if due := f.NextFull.Sub(now); due > 0 {
		return min(interval, max(due, verdict.MinInterval))
	}
	return interval
}

// Report writes the verdict about the reconcile into status, events and log. The panic of a method of the component precedes other errors.
func (c *Concluder) Report(ctx context.Context, obj identity.Component, outcome session.Outcome, found Findings) result.Verdict {
	var before, v verdict.Verdict
	before.State, before.Reason, _ = obj.GetStatus().GetState()
	err := guard.CallNamed("a method of the component", func() error {
		v = verdict.Evaluate(c.factsOf(obj, outcome, found))
		SetVerdict(obj, v)
		found.NoteTurn()
		return nil
	})
	if err != nil {
		if _, known := errors.AsType[*types.PanicError](outcome.Err); known {
			err = outcome.Err
		}
		const interval = verdict.DefaultInterval
		v = verdict.Evaluate(verdict.Facts{
			Deleting: !obj.GetDeletionTimestamp().IsZero(), Intervals: verdict.Intervals{Requeue: interval, Retry: interval, Timeout: interval}, Err: err,
		})
		SetVerdict(obj, v)
	}
	res := v.Result()
	res.Announced = c.Telemetry.Report(ctx, obj, &c.MemoryOf(obj).Activity, before, v, found.Dependents)
	return res
}

// SetVerdict brings state and conditions in line with the verdict.
func SetVerdict(obj identity.Component, v verdict.Verdict) {
	obj.GetStatus().State = v.State
	conditions.Delete(identity.Conditions(obj), "OperatorConflict") // an earlier version set it
	v.SetConditions(identity.Conditions(obj))
}

// factsOf collects what the verdict depends on.
func (c *Concluder) factsOf(obj identity.Component, outcome session.Outcome, found Findings) verdict.Facts {
	var f verdict.Facts
	status, known, now := revision.Of(obj), c.MemoryOf(obj), c.Now()
	unfinished, isUnfinished := errors.AsType[*verdict.UnfinishedError](outcome.Err)
	if isUnfinished {
		f = unfinished.Facts
	}
	_, _, f.PreviousMessage = obj.GetStatus().GetState()
	f.Deleting = !obj.GetDeletionTimestamp().IsZero()
	f.Intervals, f.Random = c.Author.Intervals(obj), backoff.Random()
	f.Intervals.Requeue = found.requeue(f.Intervals.Requeue, now)
	switch {
	case isUnfinished && f.Err == nil:
	case outcome.Err != nil:
		f.Err = outcome.Err // which may say more than the cause in the facts, such as that the definition is outdated
	case outcome.Phase == session.PhaseSkip && outcome.Policy == v1alpha1.ManagementPolicySkip:
		f.Skipped, f.SkippedFor = "the management policy of the component is skip", f.RegularRequeue()
	case outcome.Phase == session.PhaseSkip:
		f.Skipped, f.SkippedFor = c.Author.Suspension(obj)
	case outcome.Phase == session.PhaseClaim && outcome.Result != result.Success:
		f.FirstSeen = true
	case f.Deleting:
		f.Done = "nothing is left"
	default:
		done, total, _ := strings.Cut(status.Progress, "/")
		f.Done = fmt.Sprintf("%s of %s dependent objects are ready", done, total)
		for _, more := range slices.Concat(found.Notices, []string{known.Run.Pin, found.Turn}) {
			if more != "" {
				f.Done += "; " + more
			}
		}
	}
	if f.Err != nil && verdict.IsForbidden(f.Err) {
		if access, err := c.Author.Access(obj); err == nil {
			f.Err = targets.ExplainImpersonation(access, f.Err)
		}
		// The dependents have no chance to become ready, so the timeout goes on afterwards.
		if passed, running := status.StopTimeout(now); running {
			known.timeoutPassed = passed
		}
		if f.Fallback == 0 {
			f.Fallback = known.Delay()
		}
	}
	if f.Waiting != "" && !f.Deleting {
		status.StartTimeout(now, known.timeoutPassed)
		known.timeoutPassed = 0
		f.TimedOut = status.TimedOut(f.Intervals.Timeout+f.Settling, now)
	}
	if !f.Deleting {
		c.addRollback(obj, &f, known.Run, found.Turn)
	}
	return f
}

// addRollback starts a rollback if the facts say that the revision failed, and adds to them that the component is rolled back.
func (c *Concluder) addRollback(obj identity.Component, f *verdict.Facts, run Run, turn string) {
	status := revision.Of(obj)
	if rollback := status.Rollback; rollback != nil {
		why := fmt.Sprintf("revision %d failed: %s", rollback.From, rollback.Message)
		if f.TimedOut || f.Failed {
			status.NoteFailed()
		}
		switch {
		case f.Waiting != "":
			f.Waiting += fmt.Sprintf("; rolls back to revision %d, because %s", rollback.To, why)
		case f.Done != "":
			f.RolledBack, f.Done = why+"; "+run.Pin, ""
			if turn != "" {
				f.RolledBack += "; " + turn
			}
		}
		return
	}
	message := f.Waiting
	switch {
	case f.Waiting != "" && (f.TimedOut || f.Failed):
	case f.Err != nil && run.Planned && !apierrors.IsConflict(f.Err) && status.TimedOut(f.Intervals.Timeout, c.Now()):
		message = f.Err.Error()
	default:
		return
	}
	status.NoteFailed()
	// A revision that the next version is to replace is not rolled back.
	if turn == "" && c.Author.RollsBack(obj) && status.RollBack(message) {
		f.Err, f.TimedOut, f.Fallback = nil, f.TimedOut || !f.Failed, MinDelay
		f.Waiting = fmt.Sprintf("%s; rolls back to revision %d", message, status.Rollback.To)
	}
}
