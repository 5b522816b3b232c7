// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
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
// room for one more entry.
func (p *Pool) makeRoom() {
	for len(p.entries) >= p.limit {
		var oldest *entry
		for _, e := range p.entries {
			if e.users == 0 && (oldest == nil || e.usedAt.Before(oldest.usedAt)) {
				oldest = e
			}
		}
		if oldest == nil {
			return
		}
		p.evict(oldest)
	}
}

// evict lets go of an entry. Whoever still uses it can go on.
func (p *Pool) evict(e *entry) {
	delete(p.entries, e.key)
	e.gone = true
	if e.trust != nil {
		e.trust.end()
	}
	e.target.Close()
	p.options.Evicted(e.target)
}

// Close lets go of all targets and ends what goes on in the background. Targets
// that are in use remain usable. Nobody can enter any more.
func (p *Pool) Close() {
	p.mu.Lock()
	p.end()
	for _, e := range p.entries {
		p.evict(e)
	}
	p.mu.Unlock()
	p.probes.Wait()
}
