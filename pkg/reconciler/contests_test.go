// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"strings"
	"testing"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// fight is an object that we want to be one thing, and somebody else another.
type fight struct {
	t        *testing.T
	contests contests
	now      time.Time
	owner    plan.Owner
	wanted   plan.Desired
	item     v1alpha1.InventoryItem
	live     plan.Observation
	writes   int
	last     plan.Plan
}

func newFight(t *testing.T) *fight {
	key := plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "a"}
	owner := plan.Owner{ID: "id", Ref: plan.OwnerRef{Kind: "Shop", Namespace: "shop", Name: "main", UID: "u"}}
	set, err := policy.Parse("corbel.example.com", nil, policy.Set{})
	if err != nil {
		t.Fatal(err)
	}
	f := &fight{
		t: t, owner: owner, now: time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC),
		wanted: plan.Desired{Key: key, Version: "v1", Digest: "1", Policies: set},
		item:   v1alpha1.InventoryItem{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a", UID: "1", Digest: "1"},
	}
	f.write("ours")
	f.item.Seen, f.item.Accepted = f.live.ObservedHash, f.live.AppliedHash
	return f
}

func (f *fight) write(value string) {
	f.live = plan.Observation{
		Existence: plan.Present, UID: "1", ResourceVersion: f.live.ResourceVersion + "1",
		Ownership:    plan.Ownership{OwnerID: f.owner.ID, Ref: f.owner.Ref},
		ObservedHash: value, AppliedHash: value, Status: plan.Status{Readiness: plan.Ready},
	}
	if value != "ours" {
		f.live.Drift = &plan.Drift{Fields: []string{"data.value"}, Manager: "their-operator", At: f.now}
	}
}

// pass is a pass of the engine.
func (f *fight) pass() {
	f.t.Helper()
	next, err := plan.Next(plan.Input{
		Name: "corbel.example.com", Owner: f.owner, Desired: []plan.Desired{f.wanted}, Recorded: []v1alpha1.InventoryItem{f.item},
		Live: map[plan.Key]plan.Observation{f.wanted.Key: f.live}, Conflicts: f.contests.of(f.owner.Ref, f.now), Now: f.now,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.last = next
	for _, step := range next.Steps {
		f.writes++
		f.write("ours")
		if !step.CorrectsDrift() {
			f.contests.end(f.owner.Ref, step.Key)
			continue
		}
		f.contests.corrected(f.owner.Ref, step.Key, *step.Drift, f.now)
	}
}

func TestAWriterEvery100MillisecondsIsUndoneAtMost12TimesIn10MinutesAndNamed(t *testing.T) {
	f := newFight(t)
	messages := map[string]bool{}
	for range 6000 {
		f.now = f.now.Add(100 * time.Millisecond)
		f.write("theirs")
		f.pass()
		for _, wait := range f.last.Waiting {
			messages[wait.Message] = true
			if wait.Reason != plan.WaitConflict || !wait.Until.After(f.now) || wait.Until.After(f.now.Add(contestLimit)) {
				t.Fatalf("at %s it waits until %s because of %s", f.now, wait.Until, wait.Reason)
			}
		}
	}
	if f.writes < contestAfter+1 || f.writes > 12 {
		t.Errorf("%d writes in 10 minutes", f.writes)
	}
	if len(messages) != 1 {
		t.Errorf("the message changed, and the status with it: %v", messages)
	}
	for message := range messages {
		if !strings.Contains(message, "their-operator") || !strings.Contains(message, "data.value") {
			t.Errorf("it does not say who changes what: %s", message)
		}
	}
	f.now = f.now.Add(contestLimit)
	before := f.writes
	if f.pass(); f.writes != before+1 {
		t.Error("it does not try any more")
	}
}

func TestAContestEndsWhenTheOtherOneGivesIn(t *testing.T) {
	f := newFight(t)
	for range contestAfter {
		f.write("theirs")
		f.pass()
	}
	if f.pass(); len(f.last.Waiting) != 1 || f.last.Settled != 0 {
		t.Fatalf("right after the correction it counts as settled: %s", f.last)
	}
	f.now = f.now.Add(contestBase)
	if f.pass(); !f.last.Done() || f.last.Settled != 1 {
		t.Fatalf("nobody changed it, and it does not settle: %s", f.last)
	}
	f.now = f.now.Add(contestQuiet + time.Second)
	f.write("theirs")
	before := f.writes
	f.pass()
	if f.pass(); f.writes != before+1 || !f.last.Done() {
		t.Errorf("the old contest is not forgotten: %s", f.last)
	}
}

func TestAChangedManifestEndsAContest(t *testing.T) {
	f := newFight(t)
	for range contestAfter {
		f.write("theirs")
		f.pass()
	}
	f.wanted.Digest = "2"
	before := f.writes
	f.pass()
	f.item.Digest = "2"
	if f.pass(); f.writes != before+1 || !f.last.Done() {
		t.Errorf("after the change: %s", f.last)
	}
}

func TestContestsOfOthersAndOfOtherObjectsAreApart(t *testing.T) {
	f := newFight(t)
	other := f.owner.Ref
	other.Name = "other"
	for range contestAfter {
		f.contests.corrected(other, f.wanted.Key, plan.Drift{}, f.now)
		f.contests.corrected(f.owner.Ref, plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "b"}, plan.Drift{}, f.now)
	}
	f.write("theirs")
	if f.pass(); f.writes != 1 {
		t.Error("the object waits for the contests of others")
	}
}

func TestNothingIsKeptAboutContestsThatAreOver(t *testing.T) {
	f := newFight(t)
	for _, name := range []string{"a", "b"} {
		f.contests.corrected(plan.OwnerRef{Kind: "Shop", Name: name}, f.wanted.Key, plan.Drift{}, f.now)
	}
	f.now = f.now.Add(2*contestQuiet + time.Second)
	f.contests.corrected(plan.OwnerRef{Kind: "Shop", Name: "c"}, f.wanted.Key, plan.Drift{}, f.now)
	if len(f.contests.byOwner) != 1 {
		t.Errorf("%d owners are kept", len(f.contests.byOwner))
	}
	f.contests.forget(plan.OwnerRef{Kind: "Shop", Name: "c"})
	if len(f.contests.byOwner) != 0 {
		t.Error("an owner that is gone is kept")
	}
}
