// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"sync"
	"time"
)

const (
	// maxSpeedup is how many times more steps than at first may be under way at
	// once on a target that answers fast.
	maxSpeedup = 4
	// fast and slow are how long a step takes on a server that could do more, and on
	// one that has too much to do: a server that says "too many requests" makes us wait
	// for a second at least.
	fast, slow = 100 * time.Millisecond, time.Second
)

// pace bounds how many steps are under way at once on a target, whoever they are
// for. The bound follows what the server can do: it grows slowly while steps are
// fast, and is halved when one is slow, down to what it was at first. It is not lower
// than that: a step may be slow for reasons of its own, such as a webhook.
type pace struct {
	first int

	lock   sync.Mutex
	bound  float64
	active int
	queue  []chan struct{} // those who wait, in order
}

func newPace(first int) *pace { return &pace{first: first, bound: float64(first)} }

// enter waits until there is room for one more step. It fails if the context ends
// before; then nothing has to be left.
func (p *pace) enter(ctx context.Context) error {
	p.lock.Lock()
	if p.active < int(p.bound) {
		p.active++
		p.lock.Unlock()
		return nil
	}
	turn := make(chan struct{})
	p.queue = append(p.queue, turn)
	p.lock.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	for i, waiting := range p.queue {
		if waiting == turn {
			p.queue = append(p.queue[:i], p.queue[i+1:]...)
			return ctx.Err()
		}
	}
	// Its turn came at the same moment; somebody else may have it.
	p.active--
	p.next()
	return ctx.Err()
}

// leave ends a step that took so long.
func (p *pace) leave(took time.Duration) {
	p.lock.Lock()
	defer p.lock.Unlock()
	switch {
	case took >= slow:
		p.bound = max(p.bound/2, float64(p.first))
	case took < fast:
		p.bound = min(p.bound+1/p.bound, float64(maxSpeedup*p.first))
	}
	p.active--
	p.next()
}

// release lets somebody else in; the step goes on later.
func (p *pace) release() {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.active--
	p.next()
}

// next lets those in whose turn it is.
func (p *pace) next() {
	for len(p.queue) > 0 && p.active < int(p.bound) {
		p.active++
		close(p.queue[0])
		p.queue = p.queue[1:]
	}
}
