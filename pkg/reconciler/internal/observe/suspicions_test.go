// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strconv"
	"testing"
	"time"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

var lease = plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "lease"}

var noon = time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)

func TestAnObjectThatChangesEverySecondIsLookedAtLessAndLessOften(t *testing.T) {
	var s Suspicions
	var looks []time.Duration
	for second := range 3600 {
		at := noon.Add(time.Duration(second) * time.Second)
		if s.Allow("main", lease, strconv.Itoa(second), at) {
			looks = append(looks, at.Sub(noon))
		}
	}
	for i := suspicionsAfter; i < len(looks); i++ {
		if gap := looks[i] - looks[i-1]; gap < suspicionBase || gap > suspicionLimit {
			t.Errorf("look %d comes %s after the one before", i+1, gap)
		}
	}
	if len(looks) < suspicionsAfter+5 || len(looks) > 22 {
		t.Errorf("%d looks in an hour, at %v", len(looks), looks)
	}
	if last := looks[len(looks)-1] - looks[len(looks)-2]; last != suspicionLimit {
		t.Errorf("at the end it is looked at every %s", last)
	}
}

func TestTheFirstChangesAndThoseOfAQuietObjectAreLookedAtAtOnce(t *testing.T) {
	var s Suspicions
	at := noon
	for i := range 100 {
		if at = at.Add(suspicionQuiet + time.Second); !s.Allow("main", lease, strconv.Itoa(i), at) {
			t.Fatalf("change %d must wait", i)
		}
	}
	for i := range suspicionsAfter - 1 {
		if !s.Allow("other", lease, strconv.Itoa(i), noon) {
			t.Fatalf("change %d must wait", i)
		}
	}
}

func TestARefusedLookIsMadeWhenItsTimeHasCome(t *testing.T) {
	var s Suspicions
	for i := range suspicionsAfter {
		s.Allow("main", lease, strconv.Itoa(i), noon)
	}
	if next := s.Next("main"); !next.IsZero() {
		t.Errorf("nothing was refused, and it comes again at %s", next)
	}
	last := strconv.Itoa(suspicionsAfter - 1)
	if !s.Allow("main", lease, last, noon) {
		t.Error("what was read cannot be judged")
	}
	if s.Allow("main", lease, "drifted", noon.Add(time.Second)) {
		t.Fatal("it is looked at once more, at once")
	}
	next := s.Next("main")
	if want := noon.Add(suspicionBase); !next.Equal(want) {
		t.Errorf("it comes again at %s, want %s", next, want)
	}
	if !s.Next("other").IsZero() {
		t.Error("others come again for it")
	}
	if !s.Allow("main", lease, "drifted", next) {
		t.Error("it is not looked at when its time has come")
	}
	if next := s.Next("main"); !next.IsZero() {
		t.Errorf("it was looked at, and comes again at %s", next)
	}
}

func TestOwnersAndObjectsAreSuspectedApartAndNothingIsKeptForever(t *testing.T) {
	var s Suspicions
	for i := range suspicionsAfter {
		s.Allow("main", lease, strconv.Itoa(i), noon)
	}
	other := lease
	other.Name = "other"
	if !s.Allow("main", other, "x", noon) || !s.Allow("second", lease, "x", noon) {
		t.Error("one object holds up the others")
	}
	s.Allow("third", lease, "x", noon.Add(time.Hour))
	if len(s.byOwner) != 1 {
		t.Errorf("%d owners are kept", len(s.byOwner))
	}
	s.Forget("third")
	if len(s.byOwner) != 0 {
		t.Error("a forgotten owner is kept")
	}
}

func TestWhatWasRefusedBeforeDoesNotCountAfterTheNextLook(t *testing.T) {
	var s Suspicions
	now, key := noon, lease
	for i := range 10 {
		s.Allow("main", key, strconv.Itoa(i), now)
	}
	if s.Next("main").IsZero() {
		t.Fatal("nothing was refused")
	}
	s.Begin("main") // and nothing of the object is suspicious any more
	if next := s.Next("main"); !next.IsZero() {
		t.Errorf("it is to be looked at again at %s", next)
	}
	s.Allow("main", key, "new", now)
	if s.Next("main").IsZero() {
		t.Error("what is refused now is forgotten")
	}
}

func TestWhatTheLastLookFoundIsKnownAsLongAsLooksAreRefused(t *testing.T) {
	var s Suspicions
	found := &plan.Drift{Manager: "kubectl-edit"}
	s.Looked("main", lease, found)
	if s.Last("main", lease) != nil {
		t.Error("something is kept of an object that nobody suspects")
	}
	for i := range suspicionsAfter {
		s.Allow("main", lease, strconv.Itoa(i), noon)
		s.Looked("main", lease, found)
	}
	if s.Allow("main", lease, "refused", noon) || s.Last("main", lease) != found {
		t.Errorf("known is %v", s.Last("main", lease))
	}
	s.Allow("main", lease, "allowed", noon.Add(suspicionBase)) // and the answer does not come
	if s.Last("main", lease) != found {
		t.Error("it is forgotten before there is an answer")
	}
	s.Looked("main", lease, nil)
	if s.Last("main", lease) != nil {
		t.Error("it is right again, and nobody knows")
	}
}
