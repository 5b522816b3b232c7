// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestThePaceFollowsWhatTheServerCanDo(t *testing.T) {
	p := newPace(8)
	steps := func(n int, took time.Duration) int {
		for range n {
			if err := p.enter(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.leave(took)
		}
		return int(p.bound)
	}
	for _, tc := range []struct {
		what string
		n    int
		took time.Duration
		want int
	}{
		{"neither fast nor slow", 100, 500 * time.Millisecond, 8},
		{"a few fast ones", 8, time.Millisecond, 8},
		{"many fast ones", 1000, time.Millisecond, 32},
		{"more of them", 1000, time.Millisecond, 32},
		{"a slow one", 1, time.Second, 16},
		{"only slow ones", 100, time.Minute, 8},
		{"fast ones again", 100, time.Millisecond, 16},
	} {
		if got := steps(tc.n, tc.took); got != tc.want {
			t.Errorf("%s: at most %d, want %d", tc.what, got, tc.want)
		}
	}
}

func TestNoMoreThanTheBoundAreUnderWay(t *testing.T) {
	p := newPace(3)
	var active, most atomic.Int64
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			if err := p.enter(t.Context()); err != nil {
				t.Error(err)
				return
			}
			now := active.Add(1)
			for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
			}
			active.Add(-1)
			p.leave(fast) // neither fast nor slow
		})
	}
	group.Wait()
	if most.Load() > 3 || p.active != 0 || len(p.queue) != 0 {
		t.Errorf("%d were under way; left are %d, waiting %d", most.Load(), p.active, len(p.queue))
	}
}

func TestWhoeverGivesUpTakesNoTurn(t *testing.T) {
	p := newPace(1)
	if err := p.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 {
		if p.enter(ctx) == nil {
			t.Fatal("there was room")
		}
	}
	p.leave(fast)
	if err := p.enter(t.Context()); err != nil || len(p.queue) != 0 {
		t.Errorf("%v, waiting %d", err, len(p.queue))
	}
}
