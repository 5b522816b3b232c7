// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
)

var errRefused = errors.New("refused")

func TestPolicies(t *testing.T) {
	delays := func(policy RetryPolicy) (delays []string) {
		for attempt := range 5 {
			retry, after := policy(errRefused, attempt)
			delays = append(delays, fmt.Sprint(retry, after))
		}
		return delays
	}
	for name, tc := range map[string]struct {
		policy RetryPolicy
		want   []string
	}{
		"exponential": {ExponentialBackoffRetryPolicy(time.Second, 5*time.Second), []string{"true 1s", "true 2s", "true 4s", "true 5s", "true 5s"}},
		"fixed":       {FixedRetryPolicy(time.Minute), []string{"true 1m0s", "true 1m0s", "true 1m0s", "true 1m0s", "true 1m0s"}},
		"none":        {NoRetryPolicy(), []string{"false 0s", "false 0s", "false 0s", "false 0s", "false 0s"}},
		"default":     {DefaultRetryPolicy, []string{"true 200ms", "true 400ms", "true 800ms", "true 1.6s", "true 3.2s"}},
	} {
		check.EqualNamed(t, name, tc.want, delays(tc.policy))
	}
}

func TestARetryHasTheNewestObjectAndTheStateOfTheLastAttempt(t *testing.T) {
	s := newStand(t, false)
	var attempts []int
	s.policy = func(_ error, attempt int) (bool, time.Duration) {
		attempts = append(attempts, attempt)
		return true, time.Duration(attempt+1) * time.Second
	}
	s.answer = func(req ReconcileRequest) (ReconcileResult, error) {
		n, _ := req.State["n"].(int)
		return ReconcileResult{State: map[string]any{"n": n + 1}}, errRefused
	}
	s.memory.appeared(configMap("1", "1", "a"))
	for i, want := range []struct {
		object string
		state  any
		after  time.Duration
	}{
		{"1", nil, 1 * time.Second},
		{"1", 1, 2 * time.Second},
		{"2", 2, 3 * time.Second},   // metadata changed
		{"3", nil, 1 * time.Second}, // content changed: that is no retry
		{"3", 1, 2 * time.Second},
	} {
		switch i {
		case 2:
			s.memory.replaced(configMap("1", "1", "a"), configMap("1", "2", "a"))
		case 3:
			s.memory.replaced(configMap("1", "2", "a"), configMap("1", "3", "b"))
		}
		actions, after, err := s.reconcile()
		last := s.last()
		if diff := cmp.Diff([]ReconcileAction{ReconcileActionCreated}, actions); diff != "" || !errors.Is(err, errRefused) || after != want.after ||
			last.Object.GetResourceVersion() != want.object || last.State["n"] != want.state {
			t.Errorf("reconcile %d: after %s, %v, version %s, state %v, actions %v", i, after, err, last.Object.GetResourceVersion(), last.State, actions)
		}
	}
	check.EqualNamed(t, "attempts", []int{0, 1, 2, 0, 1}, attempts)
	s.answer = func(ReconcileRequest) (ReconcileResult, error) {
		return ReconcileResult{State: map[string]any{"n": 9}}, nil
	}
	if _, after, err := s.reconcile(); after != 0 || err != nil || s.last().State["n"] != 2 {
		t.Errorf("%s, %v, state %v", after, err, s.last().State)
	}
	s.memory.replaced(configMap("1", "3", "b"), configMap("1", "4", "c"))
	if actions, _, _ := s.reconcile(); len(actions) != 1 || s.last().State != nil || valueOf(s.last().Old) != "b" {
		t.Errorf("after success: %v, state %v, old %q", actions, s.last().State, valueOf(s.last().Old))
	}
}

func TestRequeueAfterIsNotDoneAndCallsAgainWithTheSameAction(t *testing.T) {
	s := newStand(t, false)
	s.memory.appeared(configMap("1", "1", "a"))
	var answer error
	s.answer = func(ReconcileRequest) (ReconcileResult, error) {
		return ReconcileResult{RequeueAfter: time.Hour, State: map[string]any{"n": 1}}, answer
	}
	for range 2 {
		if actions, after, err := s.reconcile(); len(actions) != 1 || actions[0] != ReconcileActionCreated || after != time.Hour || err != nil {
			t.Errorf("%v, %s, %v", actions, after, err)
		}
	}
	if s.last().State["n"] != 1 {
		t.Errorf("state %v", s.last().State)
	}
	answer, s.policy = errRefused, NoRetryPolicy()
	if _, after, err := s.reconcile(); after != time.Hour || !errors.Is(err, errRefused) || errors.Is(err, reconcile.TerminalError(nil)) {
		t.Errorf("with an error: %s, %v", after, err)
	}
}

func TestWhatIsNotRetriedRestsUntilSomethingChangesOrAResyncIsDue(t *testing.T) {
	s := newStand(t, false)
	s.policy = NoRetryPolicy()
	s.answer = func(ReconcileRequest) (ReconcileResult, error) { return ReconcileResult{}, errRefused }
	first := configMap("1", "1", "a")
	s.memory.appeared(first)
	calls := func(want int, terminal bool) {
		t.Helper()
		actions, _, err := s.reconcile()
		if len(actions) != want || errors.Is(err, reconcile.TerminalError(nil)) != terminal {
			t.Errorf("actions %v, error %v", actions, err)
		}
	}
	calls(1, true)
	calls(0, false)
	s.memory.replaced(first, first) // a resync of the cache
	calls(1, true)
	calls(0, false)
	s.memory.replaced(first, configMap("1", "2", "b"))
	calls(1, true)

	if len(s.gaveUp) != 3 {
		t.Errorf("events: %v", s.gaveUp)
	}

	s.interval = time.Minute
	s.memory.replaced(first, configMap("1", "3", "c"))
	if _, after, err := s.reconcile(); after != time.Minute || !errors.Is(err, errRefused) {
		t.Errorf("with an interval: %s, %v", after, err)
	}
	s.clock = s.clock.Add(time.Minute)
	if actions, _, _ := s.reconcile(); len(actions) != 1 || actions[0] != ReconcileActionCreated {
		t.Errorf("after the interval: %v", actions)
	}
	s.memory.disappeared(configMap("1", "4", "c"))
	s.interval = 0
	s.clock = s.clock.Add(time.Hour)
	calls(1, true)
	check.SameNamed(t, "what is gone and given up is kept in memory", 0, len(s.memory.records))
}

func TestResyncsComeWhenTheyAreDueAndNotBefore(t *testing.T) {
	s := newStand(t, false)
	s.interval = time.Hour
	s.memory.appeared(configMap("1", "1", "a"))
	for i, want := range []struct {
		wait   time.Duration
		action []ReconcileAction
		after  time.Duration
	}{
		{0, []ReconcileAction{ReconcileActionCreated}, time.Hour},
		{40 * time.Minute, nil, 20 * time.Minute},
		{20 * time.Minute, []ReconcileAction{ReconcileActionResynced}, time.Hour},
		{59 * time.Minute, nil, time.Minute},
	} {
		s.clock = s.clock.Add(want.wait)
		actions, after, err := s.reconcile()
		if diff := cmp.Diff(want.action, actions); diff != "" || after != want.after || err != nil {
			t.Errorf("reconcile %d: %v, %s, %v", i, actions, after, err)
		}
	}
}

func TestAPanicIsAnErrorThatIsRetried(t *testing.T) {
	s := newStand(t, false)
	s.answer = func(ReconcileRequest) (ReconcileResult, error) { panic("at the disco") }
	s.memory.appeared(configMap("1", "1", "a"))
	for range 2 {
		actions, after, err := s.reconcile()
		if _, ok := errors.AsType[*types.PanicError](err); !ok || after != time.Second || len(actions) != 1 {
			t.Errorf("%v, %s, %v", actions, after, err)
		}
	}
}
