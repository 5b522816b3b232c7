// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"cmp"
	"context"
	"time"
)

// Run closes what is unused until the context ends, and then everything. It
// implements manager.Runnable of controller-runtime.
func (p *Pool) Run(ctx context.Context) error {
	defer p.Close()
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			p.sweep()
		}
	}
}

// sweep lets go of what nobody used for a while.
func (p *Pool) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.entries {
		if e.users == 0 && time.Since(e.usedAt) >= unusedFor && !p.options.Busy(e.target) {
			p.evict(e)
		}
	}
}

// makeRoom lets go of what nobody uses, the longest unused first, until there is
// room for one more entry. What is busy all the same goes only if there is nothing else.
func (p *Pool) makeRoom() {
	for len(p.entries) >= p.limit {
		var idle, busy *entry
		for _, e := range p.entries {
			switch {
			case e.users > 0:
			case p.options.Busy(e.target):
				busy = longerUnused(busy, e)
			default:
				idle = longerUnused(idle, e)
			}
		}
		oldest := cmp.Or(idle, busy)
		if oldest == nil {
			return
		}
		p.evict(oldest)
	}
}

// longerUnused returns one of two entries, the first of which may be nil.
func longerUnused(a, b *entry) *entry {
	if a != nil && a.usedAt.Before(b.usedAt) {
		return a
	}
	return b
}

// evict lets go of an entry. Whoever still uses it can go on. What belongs to the
// target ends in the background, without the lock: its last requests report to the
// pool, and nobody who enters waits for them.
func (p *Pool) evict(e *entry) {
	delete(p.entries, e.key)
	e.gone = true
	if e.trust != nil {
		e.trust.end()
	}
	p.background.Go(func() {
		e.target.Close()
		p.options.Evicted(e.target)
	})
}

// Close lets go of all targets, and returns when nothing goes on in the background
// any more and Options.Evicted was told of each. Targets that are in use remain
// usable. Nobody can enter any more.
func (p *Pool) Close() {
	p.mu.Lock()
	p.end()
	for _, e := range p.entries {
		p.evict(e)
	}
	p.mu.Unlock()
	p.background.Wait()
}
