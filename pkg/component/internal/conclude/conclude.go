// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package conclude ends the reconciles of components: it writes the outcome of the engine into the status, the events and the log.
package conclude

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/telemetry"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
)

// Author has what the options and the component say about the end of a reconcile.
type Author struct {
	Intervals func(identity.Component) verdict.Intervals
	Access    func(identity.Component) (target.Access, error)
	// RollsBack reports whether a component is rolled back when a revision fails.
	RollsBack func(identity.Component) bool
	// Suspension describes the suspension of a component. Ends is 0 if the suspension does not end by itself.
	Suspension func(identity.Component) (message string, ends time.Duration)

	ReadyWhen []reconciler.ReadyWhen
	MinReady  time.Duration
	// Limiter decides on the delays after errors; nil if the author has set another rate limiter.
	Limiter *backoff.RateLimiter
}

// Concluder ends reconciles. What it remembers of components saves requests, and repeated events and log lines.
type Concluder struct {
	Self      *identity.Operator
	Author    Author
	Telemetry *telemetry.Telemetry
	Watches   *targets.Watches // may be nil
	// RequestFast requests a reconcile on the fast path.
	RequestFast func(key client.ObjectKey, after time.Duration)
	Local       client.Reader // reads from the cluster of the operator
	Now         func() time.Time

	memories sync.Map // *Memory, by the key of the component
}

// Memory is what is remembered of one component. Reconciles of one component do not overlap, so the fields need no lock.
type Memory struct {
	// Run is about the last run of the engine.
	Run Run
	// Activity is what was done for the component since it was last reported.
	Activity telemetry.Activity

	progress progress
	// missingRights and unknownAnnotations were reported last, and are not reported again.
	missingRights, unknownAnnotations string
	// failureReasons says why workloads do not become ready, as far as their pods were read.
	failureReasons verdict.FailureReasons
	// timeoutPassed is how much of the timeout had passed when a right was found missing.
	timeoutPassed time.Duration
}

// Run is what a report has to know of a run of the engine.
type Run struct {
	// Planned: in this reconcile, the engine came so far that it could plan.
	Planned bool
	// Pin says which revision the component is pinned to, for people; empty if to none.
	Pin string
}

// progress decides on the next delay.
type progress struct {
	// idle counts the reconciles in a row in which nothing moved. It is safe for concurrent use.
	idle backoff.Streak
	// settled is the largest number of dependents that were done since an apply, or a deletion if deleting, began to fail.
	settled  int
	deleting bool
}

// MemoryOf returns what is remembered of a component, which may be nothing yet.
func (c *Concluder) MemoryOf(obj client.Object) *Memory {
	known, _ := c.memories.LoadOrStore(client.ObjectKeyFromObject(obj), &Memory{})
	return known.(*Memory)
}

// Forget drops what is remembered of a component.
func (c *Concluder) Forget(key client.ObjectKey) { c.memories.Delete(key) }

// Start notes that a reconcile of a component starts: the engine has not run yet.
func (c *Concluder) Start(key client.ObjectKey) {
	if known, ok := c.memories.Load(key); ok {
		known.(*Memory).Run.Planned = false
	}
}

// ResetDelay notes that something has changed that a component waits for.
func (c *Concluder) ResetDelay(key client.ObjectKey) {
	if known, ok := c.memories.Load(key); ok {
		known.(*Memory).progress.idle.Reset()
	}
}

// Delay returns when a component that waits is requeued if nothing else requeues it. It grows as long as there is no progress.
func (m *Memory) Delay() time.Duration { return m.progress.idle.Idle() }

// Restart drops what was found out about the manifests that were applied before.
func (m *Memory) Restart() {
	m.progress.idle.Reset()
	m.failureReasons = nil
}

// Suspend stops the timeout of a component, because its dependents have no chance to become ready. It starts again afterwards.
func (c *Concluder) Suspend(obj identity.Component) {
	revision.Of(obj).StopTimeout(c.Now())
	c.MemoryOf(obj).timeoutPassed = 0
}

// FinishApply ends a reconcile in which the engine applied, and returns Success if nothing is left to do. Hooks run before that; nil is none.
func (c *Concluder) FinishApply(ctx context.Context, obj identity.Component, t targets.Connection, outcome reconciler.Outcome, err error, hooks func() error) (result.Result, error) {
	status, known, now := revision.Of(obj), c.MemoryOf(obj), c.Now()
	before := status.Progress
	c.noteOutcome(obj, t, &outcome, err)
	err = c.nameMissing(ctx, obj, outcome, err)
	status.NoteManifests(outcome.ManifestDigest, now)
	c.noteProgress(obj, outcome, err, status.Progress != before)
	switch {
	case err != nil && !verdict.StillMoving(outcome.Waiting):
		c.requestAt(obj, verdict.NextChange(outcome.Waiting))
		return result.Empty, err
	case err != nil:
		return result.Empty, &verdict.UnfinishedError{Facts: verdict.Facts{Err: err, Fallback: known.fallback(outcome.Waiting, now)}, Cause: err}
	case !outcome.Done():
		return result.Empty, c.Waiting(obj, outcome.Waiting, known.failureReasons.Explain(ctx, now, outcome.Waiting, t.Client))
	}
	if err := c.awaitAvailable(ctx, obj, t, outcome.Desired); err != nil {
		return result.Empty, err
	}
	known.Restart()
	known.timeoutPassed = 0
	if hooks != nil {
		if err := hooks(); err != nil {
			return result.Empty, err
		}
	}
	known.Activity.SetInstalled(status.AppliedGeneration != 0)
	status.NoteApplied(obj.GetGeneration(), len(outcome.Steps) > 0, now)
	return result.Success, nil
}

// Hold ends a reconcile that has applied the current revision, because the next one is held back.
func (c *Concluder) Hold(obj identity.Component, t targets.Connection, outcome reconciler.Outcome, err error, held verdict.Held) (result.Result, error) {
	c.noteOutcome(obj, t, &outcome, err)
	if err == nil {
		err = &verdict.UnfinishedError{Facts: verdict.Facts{Held: held}}
	}
	return result.Empty, err
}

// Repair ends a reconcile in which the engine repaired the objects that were applied last. It returns why there are no new ones.
func (c *Concluder) Repair(obj identity.Component, t targets.Connection, outcome reconciler.Outcome, err, why error) error {
	c.MemoryOf(obj).Run.Planned = false // what is planned for the new set decides whether it failed
	c.noteOutcome(obj, t, &outcome, err)
	c.requestAt(obj, verdict.NextChange(outcome.Waiting))
	if err != nil || outcome.Total == 0 {
		return errors.Join(why, err)
	}
	return verdict.MessageError{Err: why, Message: why.Error() + vocabulary.RepairedMeanwhile}
}

// Delete ends a deletion by the engine. It returns nil if nothing is left.
func (c *Concluder) Delete(ctx context.Context, obj identity.Component, t targets.Connection, outcome reconciler.Outcome, err error) error {
	status, known := obj.GetStatus(), c.MemoryOf(obj)
	before := status.Progress
	known.Activity.Add(outcome)
	c.Watches.SetAwaited(client.ObjectKeyFromObject(obj), t.Target, outcome.Awaited)
	err = c.nameMissing(ctx, obj, outcome, err)
	if err == nil || outcome.Total > 0 {
		status.Progress = progressOf(outcome)
	}
	c.noteProgress(obj, outcome, err, status.Progress != before)
	switch {
	case err != nil:
		return err
	case !outcome.Done():
		return c.Waiting(obj, outcome.Waiting, nil)
	}
	c.Telemetry.ReportActivity(ctx, obj, &known.Activity, telemetry.Delete)
	return nil
}

// Waiting returns the error of a reconcile that waits. The reasons are further facts about some of the waits.
func (c *Concluder) Waiting(obj identity.Component, waits []report.Wait, reasons map[string]string) error {
	return &verdict.UnfinishedError{Facts: verdict.Facts{
		Waiting: verdict.WaitingMessage(waits, reasons), Failed: verdict.AnyFailed(waits), Fallback: c.MemoryOf(obj).fallback(waits, c.Now()),
	}}
}

// awaitAvailable returns an UnfinishedError as long as a container without a probe of a new revision has not run for long enough.
func (c *Concluder) awaitAvailable(ctx context.Context, obj identity.Component, t targets.Connection, desired *reconciler.DesiredSet) error {
	if !revision.Of(obj).IsNew() {
		return nil
	}
	facts, unread, err := verdict.Unavailable(ctx, desired.Workloads(c.Author.ReadyWhen), c.Author.MinReady, c.Now(), t.Client)
	if err != nil {
		return err
	}
	if facts.Waiting != "" {
		return &verdict.UnfinishedError{Facts: facts}
	}
	c.MemoryOf(obj).Activity.Add(reconciler.Outcome{Notes: unread})
	return nil
}

// noteOutcome notes what the engine did and found.
func (c *Concluder) noteOutcome(obj identity.Component, t targets.Connection, outcome *reconciler.Outcome, err error) {
	status := obj.GetStatus()
	if err == nil || outcome.Total > 0 {
		outcome.Notes = append(outcome.Notes, NoteDrift(obj, outcome.Drifted)...)
	}
	c.MemoryOf(obj).Activity.Add(*outcome)
	c.Watches.SetAwaited(client.ObjectKeyFromObject(obj), t.Target, outcome.Awaited)
	c.requestAt(obj, outcome.NextDriftCheck)
	status.OwnerID = cmp.Or(outcome.OwnerID, status.OwnerID)
	if err == nil && outcome.OwnerID != "" || outcome.Total > 0 {
		status.Progress = progressOf(*outcome)
	}
}

// progressOf returns the form of Status.Progress. It leaves out objects that are left to other owners.
func progressOf(outcome reconciler.Outcome) string {
	return fmt.Sprintf("%d/%d", outcome.Settled-outcome.Ignored, outcome.Total-outcome.Ignored)
}

// MinDelay is the shortest delay between two reconciles that wait.
const MinDelay = 50 * time.Millisecond

// requestAt requests a reconcile at a time; a zero time requests none.
func (c *Concluder) requestAt(obj identity.Component, at time.Time) {
	if !at.IsZero() {
		c.RequestFast(client.ObjectKeyFromObject(obj), max(at.Sub(c.Now()), MinDelay))
	}
}

// noteProgress shortens the delays of a component: while it waits, if something was written or another number of objects is done; after an
// error only if more objects are done than before. An object that is written in vain, or is ready by turns, is no progress.
func (c *Concluder) noteProgress(obj identity.Component, outcome reconciler.Outcome, err error, moved bool) {
	known := &c.MemoryOf(obj).progress
	if len(outcome.Steps) > 0 || moved {
		known.idle.Reset()
	}
	if deleting := !obj.GetDeletionTimestamp().IsZero(); deleting != known.deleting {
		known.settled, known.deleting = 0, deleting
	}
	if outcome.Settled > known.settled && c.Author.Limiter != nil {
		c.Author.Limiter.Progress(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
	}
	known.settled = max(known.settled, outcome.Settled)
	if err == nil && outcome.Done() {
		known.settled = 0
	}
}

// fallback returns the Delay of a component that waits for objects. It ends when the readiness of an object changes by itself.
func (m *Memory) fallback(waits []report.Wait, now time.Time) time.Duration {
	delay := m.Delay()
	if len(waits) > 0 && !slices.ContainsFunc(waits, func(wait report.Wait) bool { return wait.Reason != report.WaitConflict }) {
		delay = verdict.DefaultInterval // nothing moves before the time of the next correction
	}
	if next := verdict.NextChange(waits); !next.IsZero() {
		delay = min(delay, max(next.Sub(now), MinDelay))
	}
	return delay
}
