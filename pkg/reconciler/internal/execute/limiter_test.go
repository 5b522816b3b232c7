// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"testing"
	"time"

	"github.com/corbel-run/corbel/test/check"
)

func TestLimiterAdaptsToTheServer(t *testing.T) {
	l := newLimiter(8)
	steps := func(n int, took time.Duration) int {
		for range n {
			check.NoError(t, l.acquire(t.Context()))
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
		check.SameNamed(t, tc.what+": limit", tc.want, steps(tc.n, tc.took))
	}
}

func TestLimiterFallsWhileStepsRun(t *testing.T) {
	l := newLimiter(1)
	l.limit = 4
	l.issueSlots()
	for range 3 {
		check.NoError(t, l.acquire(t.Context()))
	}
	for running := 2; running >= 0; running-- {
		if l.release(slow); int(l.limit) < 4 && len(l.slots) > max(int(l.limit)-running, 0) {
			t.Errorf("%d slots are free while %d steps run at a limit of %g", len(l.slots), running, l.limit)
		}
	}
	check.SameNamed(t, "slots are free at the end", 1, len(l.slots))
}
