// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conclude

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/telemetry"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/reconciler"
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
	// Transient: all that the status does not have yet of the last reconcile is what became of writes.
	Transient bool
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

// Of returns what is remembered of a component, which may be nothing yet.
func (c *Concluder) Of(obj client.Object) *Memory {
	known, _ := c.memories.LoadOrStore(client.ObjectKeyFromObject(obj), &Memory{})
	return known.(*Memory)
}

// Forget drops what is remembered of a component.
func (c *Concluder) Forget(key client.ObjectKey) { c.memories.Delete(key) }

// ResetDelay notes that something has changed that a component waits for.
func (c *Concluder) ResetDelay(key client.ObjectKey) {
	if known, ok := c.memories.Load(key); ok {
		known.(*Memory).progress.idle.Reset()
	}
}

// Delay returns the delay after which a component that waits is requeued if nothing else requeues it. It grows as long as there is no
// progress.
func (m *Memory) Delay() time.Duration { return m.progress.idle.Idle() }

// Restart drops what was found out about the manifests that were applied before.
func (m *Memory) Restart() {
	m.progress.idle.Reset()
	m.failureReasons = nil
}

// Suspend stops the timeout of a component, because its dependents have no chance to become ready. It starts again afterwards.
func (c *Concluder) Suspend(obj identity.Component) {
	revision.Of(obj).StopTimeout(c.Now())
	c.Of(obj).timeoutPassed = 0
}
