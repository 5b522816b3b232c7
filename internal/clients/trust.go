// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"sync/atomic"
	"time"

	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/internal/backoff"
)

const (
	// provenFor is how long a probe counts, if no request fails: an address can
	// lead to another cluster from one moment to the next.
	provenFor = 10 * time.Minute
	// probeTimeout bounds a probe.
	probeTimeout = 10 * time.Second
	// probeBase and probeLimit bound the pauses between probes, with the jitter
	// from 1 to 30 seconds.
	probeBase   = time.Second
	probeLimit  = 27 * time.Second
	probeJitter = 0.1
)

// trust is what is known about the cluster of a kubeconfig. Its fields are
// guarded by the pool, but for those that are atomic.
type trust struct {
	alive context.Context
	end   context.CancelFunc
	// broken is told about requests that failed.
	broken func(err error)
	// streamEnded is told about watches that were not ended by us.
	streamEnded func()

	provenAt time.Time // zero: it must be probed
	// doubts counts how often what was proven was withdrawn.
	doubts  atomic.Int64
	probing bool
	refusal error // why the target is not used
	failure error // of the last probe
	waiters waiters

	// hung makes requests fail at once, because an earlier one got no answer.
	hung atomic.Bool
}

func (p *Pool) newTrust(e *entry) *trust {
	t := &trust{broken: func(err error) { p.distrust(e, err) }, streamEnded: func() { p.doubt(e) }}
	t.alive, t.end = context.WithCancel(p.alive)
	return t
}

func (t *trust) proven() bool { return !t.provenAt.IsZero() && time.Since(t.provenAt) < provenFor }

// admit lets somebody use the target, or puts them in a line.
func (p *Pool) admit(e *entry, waiter apitypes.NamespacedName) error {
	t := e.trust
	switch {
	case !t.proven():
		t.waiters.add(waiter)
		p.probe(e)
		if t.failure != nil {
			return &UnreachableError{Err: t.failure}
		}
		return ErrBusy
	case t.refusal != nil:
		return t.refusal
	case e.users >= p.options.Slots:
		t.waiters.add(waiter)
		return ErrBusy
	case p.options.Remote > 0 && p.remote >= p.options.Remote:
		p.starved.add(waiter)
		return ErrBusy
	}
	t.waiters.remove(waiter)
	p.starved.remove(waiter)
	p.remote++
	return nil
}

// probe starts the probes in the background.
func (p *Pool) probe(e *entry) {
	if e.trust.probing || e.trust.alive.Err() != nil {
		return
	}
	e.trust.probing = true
	p.background.Go(func() { p.probeUntilProven(e) })
}

func (p *Pool) probeUntilProven(e *entry) {
	for attempt := 0; ; attempt++ {
		doubts := e.trust.doubts.Load()
		id, err := p.identify(e)
		if p.conclude(e, doubts, id, err) {
			return
		}
		if err == nil {
			attempt = 0
		}
		pause := backoff.Jitter(backoff.Delay(attempt, probeBase, probeLimit), probeJitter, backoff.Random())
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-e.trust.alive.Done():
			timer.Stop()
			return
		}
	}
}

// conclude takes over the outcome of a probe, and tells whether it was the last one.
// The doubts are those that there were when it began.
func (p *Pool) conclude(e *entry, doubts int64, id identity, err error) bool {
	p.mu.Lock()
	t := e.trust
	var woken []apitypes.NamespacedName
	switch {
	case t.alive.Err() != nil:
		t.probing = false
	case err != nil:
		if t.failure == nil { // they can say so now
			woken = t.waiters.takeAll()
		}
		t.failure = err
	case id.changed:
		// What is remembered about the cluster is about another one.
		woken = t.waiters.takeAll()
		p.evict(e)
	case t.doubts.Load() != doubts:
		t.failure = nil // it answers, but perhaps that was before the doubt
	default:
		t.provenAt, t.probing, t.refusal, t.failure = time.Now(), false, id.refusal, nil
		t.hung.Store(false)
		woken = t.waiters.takeAll()
	}
	over := !t.probing || t.alive.Err() != nil
	p.mu.Unlock()
	p.wake(woken)
	return over
}

// distrust is called when a request failed.
func (p *Pool) distrust(e *entry, err error) {
	if isTimeout(err) {
		e.trust.hung.Store(true)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e.trust.withdraw()
	p.probe(e)
}

// doubt is called when a watch ended, which is no failure. But the address may lead to
// another cluster by now, and what watches tell next may be about that one: nobody may
// act on it before the cluster is probed again. Nobody waits for that yet.
func (p *Pool) doubt(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.trust.withdraw()
}

func (t *trust) withdraw() {
	t.provenAt = time.Time{}
	t.doubts.Add(1)
}
