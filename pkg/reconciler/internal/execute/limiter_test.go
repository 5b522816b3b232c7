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

func TestLimiterAdaptsToTheServer(t *testing.T) {
	l := newLimiter(8)
	steps := func(n int, took time.Duration) int {
		for range n {
			if err := l.acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
			l.release(took)
		}
		if len(l.slots) != int(l.limit) {
			t.Errorf("%d slots are free at a limit of %g", len(l.slots), l.limit)
		}
		return int(l.limit)
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
			t.Errorf("%s: limit %d, want %d", tc.what, got, tc.want)
		}
	}
}

func TestLimiterLimitsHowManyStepsRunAtOnce(t *testing.T) {
	l := newLimiter(3)
	var active, most atomic.Int64
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			if err := l.acquire(t.Context()); err != nil {
				t.Error(err)
				return
			}
			now := active.Add(1)
			for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
			}
			active.Add(-1)
			l.release(fast) // neither fast nor slow
		})
	}
	group.Wait()
	if most.Load() > 3 || len(l.slots) != 3 {
		t.Errorf("%d ran at once; %d slots are free", most.Load(), len(l.slots))
	}
}

func TestLimiterFallsWhileStepsRun(t *testing.T) {
	l := newLimiter(1)
	l.limit = 4
	l.issueSlots()
	for range 3 {
		if err := l.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for running := 2; running >= 0; running-- {
		if l.release(slow); int(l.limit) < 4 && len(l.slots) > max(int(l.limit)-running, 0) {
			t.Errorf("%d slots are free while %d steps run at a limit of %g", len(l.slots), running, l.limit)
		}
	}
	if len(l.slots) != 1 {
		t.Errorf("%d slots are free at the end", len(l.slots))
	}
}

func TestACancelledStepAcquiresNoSlot(t *testing.T) {
	l := newLimiter(1)
	if err := l.acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 {
		if l.acquire(ctx) == nil {
			t.Fatal("a slot was free")
		}
	}
	l.release(fast)
	if l.acquire(ctx) == nil {
		t.Error("a cancelled step got a slot")
	}
	if err := l.acquire(t.Context()); err != nil {
		t.Error(err)
	}
}
