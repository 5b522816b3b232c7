// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"strconv"
	"testing"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/watch"
	"github.com/corbel-run/corbel/test/check"
)

// conflicting is an object that another client changes to something else than we desire.
type conflicting struct {
	t       *testing.T
	history *repairHistory
	now     time.Time
	owner   plan.Owner
	desired plan.Desired
	item    v1alpha1.InventoryItem
	live    plan.Observation
	writes  int
	last    plan.Plan
}

func newConflicting(t *testing.T) *conflicting {
	key := plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "a"}
	owner := plan.Owner{ID: "id", Ref: plan.OwnerRef{Kind: "Shop", Namespace: "shop", Name: "main", UID: "u"}}
	set := check.Must(policy.Parse("corbel.example.com", nil, policy.Set{}))(t)
	f := &conflicting{
		t: t, history: newRepairHistory(), owner: owner, now: time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC),
		desired: plan.Desired{Key: key, Version: "v1", Digest: "1", Policies: set},
		item:    v1alpha1.InventoryItem{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a", UID: "1", Digest: "1"},
	}
	f.write("ours")
	f.item.ObservedHash, f.item.AppliedHash = f.live.ObservedHash, f.live.AppliedHash
	return f
}

func (f *conflicting) write(value string) {
	f.live = plan.Observation{
		Existence: plan.Present, UID: "1", ResourceVersion: f.live.ResourceVersion + "1",
		Ownership:    plan.Ownership{OwnerID: f.owner.ID, Ref: f.owner.Ref},
		ObservedHash: value, AppliedHash: value, Status: plan.Status{Readiness: plan.Ready},
	}
	if value != "ours" {
		f.live.Drift = &report.Drift{Fields: []string{"data.value"}, Manager: "their-operator", At: f.now}
	}
}

// reconcile plans once, and does what the plan says.
func (f *conflicting) reconcile() {
	f.t.Helper()
	next := check.Must(plan.Next(plan.Input{
		Name: "corbel.example.com", Owner: f.owner, Desired: []plan.Desired{f.desired}, Recorded: []v1alpha1.InventoryItem{f.item},
		Live: map[plan.Key]plan.Observation{f.desired.Key: f.live}, Conflicts: f.history.conflicts(f.owner.Ref, f.now), Now: f.now,
	}))(f.t)
	f.last = next
	for _, step := range next.Steps {
		f.writes++
		f.write("ours")
		if !step.CorrectsDrift() {
			f.history.repairs.Reset(f.owner.Ref, step.Key)
			continue
		}
		f.history.add(f.owner.Ref, step.Key, *step.Drift, f.now)
	}
}

func TestAWriterEvery100MillisecondsIsUndoneAtMost12TimesIn10MinutesAndNamed(t *testing.T) {
	f := newConflicting(t)
	messages := map[string]bool{}
	for range 6000 {
		f.now = f.now.Add(100 * time.Millisecond)
		f.write("theirs")
		f.reconcile()
		for _, wait := range f.last.Waiting {
			messages[wait.Message] = true
			if wait.Reason != report.WaitConflict || !wait.Until.After(f.now) || wait.Until.After(f.now.Add(repairLimits.Limit)) {
				t.Fatalf("at %s it waits until %s because of %s", f.now, wait.Until, wait.Reason)
			}
		}
	}
	if f.writes < repairLimits.Burst+1 || f.writes > 12 {
		t.Errorf("%d writes in 10 minutes", f.writes)
	}
	if len(messages) != 1 {
		t.Errorf("the message changed, and the status with it: %v", messages)
	}
	for message := range messages {
		check.Contains(t, message, "their-operator", "data.value")
	}
	f.now = f.now.Add(repairLimits.Limit)
	before := f.writes
	if f.reconcile(); f.writes != before+1 {
		t.Error("it does not try any more")
	}
}

func TestAConflictEndsWhenTheOtherClientStops(t *testing.T) {
	f := newConflicting(t)
	for range repairLimits.Burst {
		f.write("theirs")
		f.reconcile()
	}
	if f.reconcile(); len(f.last.Waiting) != 1 || f.last.Settled != 0 {
		t.Fatalf("right after the correction it counts as settled: %s", f.last)
	}
	f.now = f.now.Add(repairLimits.Base)
	if f.reconcile(); !f.last.Done() || f.last.Settled != 1 {
		t.Fatalf("it was not changed, and it is not settled: %s", f.last)
	}
	f.now = f.now.Add(repairLimits.Quiet + time.Second)
	f.write("theirs")
	before := f.writes
	f.reconcile()
	if f.reconcile(); f.writes != before+1 || !f.last.Done() {
		t.Errorf("the old conflict is not dropped: %s", f.last)
	}
}

func TestOnlyTheEditsOfAnObjectThatIsEditedAllTheTimeWait(t *testing.T) {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	var notified []Change
	r := &Reconciler{observer: &observe.Observer{DriftChecks: observe.NewDriftChecks()}, settings: settings{
		ReconcilerOptions: ReconcilerOptions{
			Now: func() time.Time { return now }, Changed: func(_ Owner, change Change) { notified = append(notified, change) },
		},
	}}
	key := plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "lease"}
	other := plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "other"}
	r.watched.set("main", plan.OwnerRef{Name: "main"}, []plan.Key{key, other})
	for i := range 20 {
		r.observer.DriftChecks.Allow("main", key, strconv.Itoa(i), now)
	}
	for name, tc := range map[string]struct {
		change watch.Change
		waits  bool
	}{
		"an edit":                              {watch.Change{Owner: "main", Key: key, What: watch.Content, Edited: true}, true},
		"deleted, or adopted by another owner": {watch.Change{Owner: "main", Key: key, What: watch.Content}, false},
		"vanished":                             {watch.Change{Owner: "main", Key: key, What: watch.Vanished}, false},
		"its status":                           {watch.Change{Owner: "main", Key: key, What: watch.Readiness}, false},
		"an edit of another":                   {watch.Change{Owner: "main", Key: other, What: watch.Content, Edited: true}, false},
	} {
		notified = nil
		if r.onChange(tc.change); len(notified) != 1 || notified[0].After > 0 != tc.waits {
			t.Errorf("%s: notified of %+v", name, notified)
		}
	}
	if r.onChange(watch.Change{Owner: "unknown", Key: key}); len(notified) != 1 {
		t.Errorf("notified of %+v", notified)
	}
}

// A controller that copies labels, or another client that writes our label and annotation on its
// own objects all day, must not keep the owner busy.
func TestObjectsWithACopyOfTheOwnershipMetadataAreCheckedLessAndLessOften(t *testing.T) {
	kinds := []watch.What{watch.Readiness, watch.Output, watch.Content, watch.Vanished}
	start := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	recorded := plan.Key{Kind: "EndpointSlice", Namespace: "shop", Name: "recorded"}
	unknown := func(i int) plan.Key {
		return plan.Key{Kind: "EndpointSlice", Namespace: "shop", Name: strconv.Itoa(i)}
	}
	for name, tc := range map[string]struct {
		change   func(i int) watch.Change
		min, max int // how often the owner is to look at once, in an hour
	}{
		"a copy of the label": {func(i int) watch.Change {
			return watch.Change{Owner: "main", Key: unknown(0), What: kinds[i%len(kinds)], Edited: i%3 == 0}
		}, 0, 0},
		"a copy of label and annotation": {func(i int) watch.Change {
			return watch.Change{Owner: "main", Key: unknown(0), What: kinds[i%len(kinds)], NamesOwner: true}
		}, 1, 40},
		"ever new copies": {func(i int) watch.Change {
			return watch.Change{Owner: "main", Key: unknown(i), What: watch.Content, NamesOwner: true}
		}, 1, 40},
		"its own outputs": {func(int) watch.Change {
			return watch.Change{Owner: "main", Key: recorded, What: watch.Output, NamesOwner: true}
		}, 5, 40},
		"its own": {func(int) watch.Change {
			return watch.Change{Owner: "main", Key: recorded, What: watch.Content, NamesOwner: true}
		}, 3600, 3600},
		"its own without the annotation": {func(int) watch.Change {
			return watch.Change{Owner: "main", Key: recorded, What: watch.Readiness}
		}, 3600, 3600},
	} {
		now, atOnce := start, 0
		r := &Reconciler{observer: &observe.Observer{DriftChecks: observe.NewDriftChecks()}}
		r.settings.Now = func() time.Time { return now }
		r.settings.Changed = func(_ Owner, change Change) {
			if change.After == 0 {
				atOnce++
			}
		}
		r.watched.set("main", plan.OwnerRef{Name: "main"}, []plan.Key{recorded})
		for i := range 3600 {
			now = start.Add(time.Duration(i) * time.Second)
			r.onChange(tc.change(i))
		}
		if atOnce < tc.min || atOnce > tc.max {
			t.Errorf("%s: %d times at once, want %d to %d", name, atOnce, tc.min, tc.max)
		}
	}
}
