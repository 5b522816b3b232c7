// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conclude

import (
	"testing"
	"time"

	"github.com/corbel-run/corbel/internal/report"
)

func TestFallback(t *testing.T) {
	now := time.Unix(1000, 0)
	known := &Memory{}
	wait := func(reason report.WaitReason, after time.Duration) report.Wait {
		return report.Wait{Reason: reason, Until: now.Add(after)}
	}
	notReady := report.Wait{Reason: report.WaitReady}
	first, second := known.fallback(nil, now), known.fallback(nil, now)
	if first <= 0 || second <= first {
		t.Errorf("waits %s, then %s", first, second)
	}
	for range 20 {
		known.fallback(nil, now)
	}
	if got := known.fallback([]report.Wait{notReady, wait(report.WaitReady, 2*time.Second)}, now); got != 2*time.Second {
		t.Errorf("requeued after %s, though an object changes after 2s", got)
	}
	if got := known.fallback([]report.Wait{wait(report.WaitReady, -time.Hour)}, now); got != MinDelay {
		t.Errorf("requeued after %s, though an object should have changed", got)
	}
	known.Restart()
	if got := known.fallback(nil, now); got != first {
		t.Errorf("after progress it waits %s, not %s", got, first)
	}
}

func TestAComponentThatWaitsForAConflictIsRequeuedInTime(t *testing.T) {
	now := time.Unix(1000, 0)
	contest := report.Wait{Reason: report.WaitConflict, Until: now.Add(4 * time.Minute)}
	known := &Memory{}
	if got := known.fallback([]report.Wait{contest}, now); got < 3*time.Minute || got > 4*time.Minute {
		t.Errorf("it comes again after %s", got)
	}
	if got := known.fallback([]report.Wait{contest, {Reason: report.WaitReady}}, now); got > time.Second {
		t.Errorf("what else is waited for is looked at after %s", got)
	}
}
