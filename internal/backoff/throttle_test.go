// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"testing"
	"time"
)

var noon = time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)

func newTestThrottle() *Throttle[string, int, string] {
	return NewThrottle[string, int, string](Limits{Burst: 2, Base: time.Second, Limit: 3 * time.Second, Quiet: time.Minute})
}

func TestAThrottlePausesAfterTheBurstUntilTheKeyWasQuiet(t *testing.T) {
	throttle := newTestThrottle()
	for count, pause := range []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second} {
		got := throttle.Count("main", 1, "x", noon)
		if want := noon.Add(pause); got.Count != count+1 || !got.Until.Equal(want) || got.Value != "x" {
			t.Errorf("got %+v, want %d actions, the next at %s", got, count+1, want)
		}
	}
	throttle.Count("main", 2, "y", noon)
	if paused := throttle.Paused("main", noon.Add(time.Second)); len(paused) != 1 || paused[1].Value != "x" {
		t.Errorf("paused are %+v", paused)
	}
	if paused := throttle.Paused("main", noon.Add(3*time.Second)); len(paused) != 0 {
		t.Errorf("after the pause, paused are %+v", paused)
	}
	if throttle.Get("other", 1, noon).Count != 0 || throttle.Get("main", 3, noon).Count != 0 {
		t.Error("owners and keys are not counted apart")
	}
	over := noon.Add(time.Minute + 4*time.Second)
	if got := throttle.Get("main", 1, over); got.Count != 0 || got.Value != "" {
		t.Errorf("after a quiet time there is %+v", got)
	}
	if got := throttle.Count("main", 1, "z", over); got.Count != 1 {
		t.Errorf("after a quiet time it counts from %d", got.Count)
	}
}

func TestAThrottleKeepsNothingForever(t *testing.T) {
	throttle := newTestThrottle()
	throttle.Count("first", 1, "", noon)
	throttle.Count("second", 1, "", noon)
	throttle.Count("third", 1, "", noon.Add(3*time.Minute))
	if len(throttle.byOwner) != 1 {
		t.Errorf("%d owners are kept", len(throttle.byOwner))
	}
	if throttle.ForgetOwner("third"); len(throttle.byOwner) != 0 {
		t.Error("a forgotten owner is kept")
	}
}
