// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/test/check"
)

var _ workqueue.TypedRateLimiter[reconcile.Request] = (*RateLimiter)(nil)

const ms = time.Millisecond

func TestDelayDoublesUpToTheLimit(t *testing.T) {
	for _, tc := range []struct {
		attempt     int
		base, limit time.Duration
		want        time.Duration
	}{
		{0, 200 * ms, time.Minute, 200 * ms},
		{1, 200 * ms, time.Minute, 400 * ms},
		{3, 200 * ms, time.Minute, 1600 * ms},
		{8, 200 * ms, time.Minute, 51200 * ms},
		{9, 200 * ms, time.Minute, time.Minute},
		{math.MaxInt, 200 * ms, time.Minute, time.Minute},
		{60, time.Second, math.MaxInt64, math.MaxInt64},
		{0, time.Hour, time.Minute, time.Minute},
		{2, 25 * ms, 100 * ms, 100 * ms},
	} {
		if got := Delay(tc.attempt, tc.base, tc.limit); got != tc.want {
			t.Errorf("Delay(%d, %s, %s) = %s, want %s", tc.attempt, tc.base, tc.limit, got, tc.want)
		}
	}
}

func TestRateLimiter(t *testing.T) {
	l := NewRateLimiter()
	l.random = func() float64 { return 0 }
	var a, b reconcile.Request
	a.Name, b.Name = "a", "b"
	var got []time.Duration
	for range 12 {
		got = append(got, l.When(a))
	}
	want := []time.Duration{200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 12800 * ms, 25600 * ms, 51200 * ms, 102400 * ms, errorCeiling, errorCeiling}
	check.Equal(t, want, got)
	if l.NumRequeues(a) != 12 || l.When(b) != 200*ms {
		t.Error("requests are not counted apart")
	}
	l.Progress(a)
	if first, second := l.When(a), l.When(a); first != 3200*ms || second != 6400*ms {
		t.Errorf("after some progress the delays are %s and %s", first, second)
	}
	l.Forget(a)
	l.Progress(a) // of a request without failures is nothing
	if l.NumRequeues(a) != 0 || l.When(a) != 200*ms {
		t.Error("Forget did not forget")
	}
}

func TestAnOutageOfHoursIsOverTwoMinutesAfterItsEnd(t *testing.T) {
	l := NewRateLimiter()
	l.random = func() float64 { return 1 }
	var r reconcile.Request
	var outage, last time.Duration
	for outage < 2*time.Hour {
		last = l.When(r)
		outage += last
		if last > 2*time.Minute {
			t.Fatalf("after %s the delay is %s", outage, last)
		}
	}
	if last < 100*time.Second {
		t.Errorf("the last delay is %s, although it should cost little to wait", last)
	}
}

func TestRateLimiterJitterIsAtMostATenth(t *testing.T) {
	l := NewRateLimiter()
	var r reconcile.Request
	for range 1000 {
		if d := l.When(r); d < 200*ms || d > 220*ms {
			t.Fatalf("the first delay is %s", d)
		}
		l.Forget(r)
	}
}

func TestAStreakGetsSlowerUntilItEnds(t *testing.T) {
	var s Streak
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second} {
		check.SameNamed(t, "delay", want, s.Next(time.Second, 3*time.Second))
	}
	s.Reset()
	if first, second := s.Idle(), s.Idle(); first != idleBase || second != 2*idleBase {
		t.Errorf("after the end of the streak %s and %s", first, second)
	}
}

func TestRetriedHidesThatAnErrorIsTerminalAndNothingElse(t *testing.T) {
	other, path := errors.New("other"), &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}
	terminal := reconcile.TerminalError(path)
	for name, err := range map[string]error{
		"bare": terminal, "wrapped": fmt.Errorf("a: %w", terminal), "joined": errors.Join(other, terminal), "twice": Retried(terminal),
	} {
		got := Retried(err)
		if errors.Is(got, reconcile.TerminalError(nil)) || errors.Is(fmt.Errorf("around: %w", got), reconcile.TerminalError(nil)) {
			t.Errorf("%s: it is terminal", name)
		}
		if found, ok := errors.AsType[*fs.PathError](got); !ok || found != path || !errors.Is(got, fs.ErrNotExist) || got.Error() != err.Error() {
			t.Errorf("%s: %v", name, got)
		}
		if errors.Is(got, other) != errors.Is(err, other) {
			t.Errorf("%s: what was joined is lost", name)
		}
	}
	if Retried(other) != other || Retried(nil) != nil {
		t.Error("an error that is not terminal is not returned as it is")
	}
}

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
	check.SameNamed(t, "owners are kept", 1, len(throttle.byOwner))
	if throttle.ForgetOwner("third"); len(throttle.byOwner) != 0 {
		t.Error("a forgotten owner is kept")
	}
}
