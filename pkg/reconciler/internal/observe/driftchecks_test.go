// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strconv"
	"testing"
	"time"

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

var lease = plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "lease"}

var noon = time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)

func TestAnObjectThatChangesEverySecondIsReadLessAndLessOften(t *testing.T) {
	s := NewDriftChecks()
	var looks []time.Duration
	for second := range 3600 {
		at := noon.Add(time.Duration(second) * time.Second)
		if s.Allow("main", lease, strconv.Itoa(second), at) {
			looks = append(looks, at.Sub(noon))
		}
	}
	for i := driftCheckLimits.Burst; i < len(looks); i++ {
		if gap := looks[i] - looks[i-1]; gap < driftCheckLimits.Base || gap > driftCheckLimits.Limit {
			t.Errorf("look %d comes %s after the one before", i+1, gap)
		}
	}
	if len(looks) < driftCheckLimits.Burst+5 || len(looks) > 22 {
		t.Errorf("%d looks in an hour, at %v", len(looks), looks)
	}
	if last := looks[len(looks)-1] - looks[len(looks)-2]; last != driftCheckLimits.Limit {
		t.Errorf("at the end it is looked at every %s", last)
	}
}

func TestARefusedReadIsAllowedAfterThePause(t *testing.T) {
	s := NewDriftChecks()
	for i := range driftCheckLimits.Burst {
		s.Allow("main", lease, strconv.Itoa(i), noon)
	}
	if last := strconv.Itoa(driftCheckLimits.Burst - 1); !s.Allow("main", lease, last, noon) {
		t.Error("what was read cannot be used")
	}
	now := noon.Add(time.Second)
	if s.Allow("main", lease, "drifted", now) {
		t.Fatal("it is read once more, at once")
	}
	next := s.Next("main", lease, now)
	if want := noon.Add(driftCheckLimits.Base); !next.Equal(want) {
		t.Errorf("it is read again at %s, want %s", next, want)
	}
	if !s.Next("other", lease, now).Equal(now) {
		t.Error("other owners wait for it")
	}
	if !s.Allow("main", lease, "drifted", next) {
		t.Error("it is not read after the pause")
	}
}

func TestTheDriftOfTheLastReadIsKnownAsLongAsReadsAreRefused(t *testing.T) {
	s := NewDriftChecks()
	found := &report.Drift{Manager: "kubectl-edit"}
	s.setDrift("main", lease, found)
	if s.lastDrift("main", lease, noon) != nil {
		t.Error("something is kept of an object that was not read")
	}
	for i := range driftCheckLimits.Burst {
		s.Allow("main", lease, strconv.Itoa(i), noon)
		s.setDrift("main", lease, found)
	}
	if s.Allow("main", lease, "refused", noon) || s.lastDrift("main", lease, noon) != found {
		t.Errorf("known is %v", s.lastDrift("main", lease, noon))
	}
	s.Allow("main", lease, "allowed", noon.Add(driftCheckLimits.Base)) // and the answer does not come
	if s.lastDrift("main", lease, noon) != found {
		t.Error("it is dropped before there is an answer")
	}
	s.setDrift("main", lease, nil)
	if s.lastDrift("main", lease, noon) != nil {
		t.Error("it is right again, and its drift is kept")
	}
}
