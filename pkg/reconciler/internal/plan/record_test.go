// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
	"github.com/corbel-run/corbel/test/check"
)

func TestFold(t *testing.T) {
	now := metav1.NewTime(startOfTime)
	before := metav1.NewTime(startOfTime.Add(-time.Hour))
	key := Key{Kind: "ConfigMap", Namespace: "shop", Name: "a"}
	item := func(change func(i *v1alpha1.InventoryItem)) *v1alpha1.InventoryItem {
		i := &v1alpha1.InventoryItem{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a", UID: "u1", Digest: "old", ObservedHash: "s1", AppliedHash: "a1", AppliedAt: &before}
		change(i)
		return i
	}
	recorded := item(func(*v1alpha1.InventoryItem) {})
	then := *item(func(i *v1alpha1.InventoryItem) { i.Digest, i.UID = "new", "" })
	present := Observation{Existence: Present, UID: "u2", ResourceVersion: "7", ObservedHash: "s2", AppliedHash: "a2", Status: Status{Readiness: Ready}}
	silent := present
	silent.Status = Status{Readiness: ReadinessUnknown}
	refreshed := desiredObject(key, "1", defaultPolicies())
	refreshed.Policies.Reapply = time.Minute
	written := func(appliedAt *metav1.Time) *v1alpha1.InventoryItem {
		return item(func(i *v1alpha1.InventoryItem) {
			i.UID, i.Digest, i.ObservedHash, i.AppliedHash, i.AppliedAt = "u2", "new", "s2", "a2", appliedAt
		})
	}

	tests := []struct {
		name   string
		result Result
		want   *v1alpha1.InventoryItem // nil if the object is removed from the record
	}{
		{
			name:   "a write records uid and hashes of the answer, and drops when the last one was",
			result: Result{Step: Step{Verb: VerbReplace, ItemAfter: then}, Observation: present},
			want:   written(nil),
		},
		{
			name:   "a creation does the same",
			result: Result{Step: Step{Verb: VerbCreate, ItemAfter: then}, Observation: present},
			want:   written(nil),
		},
		{
			name:   "the time is kept if the readiness of the object is unknown",
			result: Result{Step: Step{Verb: VerbMerge, ItemAfter: then}, Observation: silent},
			want:   written(&now),
		},
		{
			name:   "the time is kept if the object is to be refreshed",
			result: Result{Step: Step{Verb: VerbOverride, ItemAfter: then, Desired: &refreshed}, Observation: present},
			want:   written(&now),
		},
		{
			name:   "a failed write changes nothing",
			result: Result{Step: Step{Verb: VerbReplace, ItemAfter: then}, Observation: present, Err: errors.New("no")},
			want:   recorded,
		},
		{
			name:   "a write of which nothing is known changes nothing",
			result: Result{Step: Step{Verb: VerbReplace, ItemAfter: then}},
			want:   recorded,
		},
		{
			name:   "a deleted object stays until its absence is planned with",
			result: Result{Step: Step{Verb: VerbDelete}, Observation: Observation{Existence: Absent}},
			want:   recorded,
		},
		{
			name:   "a terminating object stays",
			result: Result{Step: Step{Verb: VerbDelete}, Observation: present},
			want:   recorded,
		},
		{
			name:   "a blocked deletion changes nothing",
			result: Result{Step: Step{Verb: VerbDelete}, Observation: present, Blocked: "in use"},
			want:   recorded,
		},
		{
			name:   "a content that cannot be read starts to be measured",
			result: Result{Step: Step{Verb: VerbDelete, Guard: GuardEmptyElseOrphan}, Observation: present, Blocked: "unread", ContentUnknown: true},
			want:   item(func(i *v1alpha1.InventoryItem) { i.UnreadSince, i.UnreadLast = &now, &now }),
		},
		{
			name: "a content that still cannot be read goes on being measured",
			result: Result{Step: Step{Verb: VerbDelete, Guard: GuardEmptyElseOrphan, ItemAfter: v1alpha1.InventoryItem{UnreadSince: &before}},
				Observation: present, Blocked: "unread", ContentUnknown: true},
			want: item(func(i *v1alpha1.InventoryItem) { i.UnreadSince, i.UnreadLast = &before, &now }),
		},
		{
			name:   "an orphaned namespace is removed from the record",
			result: Result{Step: Step{Verb: VerbDelete}, Observation: present, Orphaned: true},
		},
		{
			name:   "an orphaned object is removed from the record",
			result: Result{Step: Step{Verb: VerbOrphan}, Observation: present},
		},
		{
			name:   "a failed orphaning changes nothing",
			result: Result{Step: Step{Verb: VerbOrphan}, Observation: present, Err: errors.New("no")},
			want:   recorded,
		},
		{
			name:   "an orphaning of which nothing is known changes nothing",
			result: Result{Step: Step{Verb: VerbOrphan}},
			want:   recorded,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			other := v1alpha1.InventoryItem{Version: "v1", Kind: "Secret", Namespace: "shop", Name: "b", UID: "u9"}
			inventory := []v1alpha1.InventoryItem{*recorded.DeepCopy(), other}
			live := map[Key]Observation{key: {Existence: Present, UID: "u1"}, KeyOf(other): {Existence: Present, UID: "u9"}}
			test.result.Step.Key = key

			got := Fold(inventory, live, []Result{test.result}, now)

			want := []v1alpha1.InventoryItem{other}
			if test.want != nil {
				want = []v1alpha1.InventoryItem{*test.want, other}
			}
			check.EqualNamed(t, "the record", want, got)
			wantLive := map[Key]Observation{key: test.result.Observation, KeyOf(other): {Existence: Present, UID: "u9"}}
			check.EqualNamed(t, "the observations", wantLive, live)
			check.EqualNamed(t, "the old record was changed", *recorded, inventory[0])
		})
	}
}

func TestNoTimeoutOfTheRecordEndsEarly(t *testing.T) {
	item := v1alpha1.InventoryItem{Version: "v1", Kind: "Namespace", Name: "a", UID: "u1"}
	unread := Result{Step: Step{Key: KeyOf(item), Verb: VerbDelete, Guard: GuardEmptyElseOrphan}, Observation: Observation{Existence: Present, UID: "u1"}, Blocked: "pods cannot be read", ContentUnknown: true}
	now := startOfTime.Add(400 * time.Millisecond)
	got := Fold([]v1alpha1.InventoryItem{item}, map[Key]Observation{}, []Result{unread}, metav1.NewTime(now))
	if since := got[0].UnreadSince; since == nil || !since.Equal(&metav1.Time{Time: startOfTime.Add(time.Second)}) || !got[0].UnreadLast.Equal(&metav1.Time{Time: startOfTime}) {
		t.Errorf("unread since %v, last %v", since, got[0].UnreadLast)
	}
}

// The server answers some objects and keeps none of them. Their records are dropped once
// they are no longer desired; those of objects that merely cannot be read stay.
func TestARecordOfAnObjectThatTheServerDoesNotStoreIsDropped(t *testing.T) {
	answered := v1alpha1.InventoryItem{Group: "example.com", Version: "v1", Kind: "Review", Name: "a", Digest: "sha"}
	started, created, ran := answered, answered, answered
	started.Digest, created.UID, ran.RunOn = "", "u", "pre-delete"
	for name, tc := range map[string]struct {
		item  v1alpha1.InventoryItem
		stays bool
	}{
		"answered without a uid": {item: answered}, "not answered": {item: started, stays: true},
		"created": {item: created, stays: true}, "ran before the deletion": {item: ran, stays: true},
	} {
		for _, cause := range []Cause{Applying, Deleting} {
			p, err := Next(Input{Cause: cause, Name: reconcilerName, Owner: theOwner, Recorded: []v1alpha1.InventoryItem{tc.item},
				Live: map[Key]Observation{KeyOf(tc.item): {Message: "the method is not allowed"}}, Now: startOfTime})
			if err != nil || len(p.Steps) > 0 || len(p.Inventory) > 0 != tc.stays || p.Done() == tc.stays {
				t.Errorf("%s, cause %d: %v, got\n%swith %d records", name, cause, err, p, len(p.Inventory))
			}
		}
	}
}

func TestOfARecordMadeWithAnotherKeyStaysWhatWasNotHashedWithIt(t *testing.T) {
	kept := v1alpha1.InventoryItem{
		Kind: "Job", Name: "a", UID: "u1", Seal: "seal", Phase: vocabulary.PhaseCompleted, Finished: vocabulary.FinishComplete,
		Kept: []types.UID{"u2"}, Replicas: new(int64(3)),
	}
	for recorded, want := range map[string]string{
		"": "", "M": "?", "M+C": "?", "M@R": "?@R", "M+C@R": "?@R", "?": "?", "?@R": "?@R",
	} {
		before, after := kept, kept
		before.Digest, before.ObservedHash, before.AppliedHash, after.Digest = recorded, "seen", "accepted", want
		items := []v1alpha1.InventoryItem{before}
		if diff := cmp.Diff([]v1alpha1.InventoryItem{after}, Rekeyed(items)); diff != "" || items[0].Digest != recorded {
			t.Errorf("%q (-want +got):\n%s", recorded, diff)
		}
		if got := IsRekeyed(after); got != (want != "") {
			t.Errorf("%q is rekeyed: %t", want, got)
		}
	}
}

func TestAnUnknownManifestCountsAsTheSameButInAnotherRevision(t *testing.T) {
	for _, tt := range []struct {
		recorded, desired string
		same              bool
	}{
		{"?", "M", true},
		{"?", "M+C", true},
		{"?", "M@1", true},
		{"?@1", "M@1", true},
		{"?@1", "M+C@1", true},
		{"?@1", "M+C", true},
		{"?@1", "M@2", false},
		{"", "M", false},
	} {
		u := &unit{recorded: true, item: v1alpha1.InventoryItem{Digest: tt.recorded}, live: Observation{Status: Status{Readiness: Failed}}}
		u.setDesired(&Desired{Digest: tt.desired, Policies: policy.Set{DependsOn: []policy.Reference{{Kind: "ConfigMap", Name: "new"}}}})
		check.SameNamed(t, tt.recorded+", then "+tt.desired+": same", tt.same, u.isSame())
		if u.item.DependsOn != nil {
			t.Errorf("%s, then %s: it depends on %v before it is written", tt.recorded, tt.desired, u.item.DependsOn)
		}
	}
}
