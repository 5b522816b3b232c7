// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/test/check"
)

func TestATypeKeepsTheNewestOrphansAndTheInputStaysAsItIs(t *testing.T) {
	definition := &unit{item: v1alpha1.InventoryItem{Defines: []v1alpha1.TypeInfo{{Group: "example.com", Kind: "Foo"}}}}
	instance := func(i int) *unit { return &unit{live: Observation{UID: types.UID(fmt.Sprint("u", i))}} }
	var before []types.UID
	for i := range maxKeptUIDs + 2 {
		if i == maxKeptUIDs {
			before = definition.item.Kept
		}
		if !definition.keepFor(instance(i), false) || definition.keepFor(instance(i), false) {
			t.Fatalf("instance %d is not news once", i)
		}
	}
	kept := definition.item.Kept
	if len(kept) != maxKeptUIDs || kept[0] != "u2" || kept[maxKeptUIDs-1] != types.UID(fmt.Sprint("u", maxKeptUIDs+1)) {
		t.Errorf("%d uids, from %s to %s", len(kept), kept[0], kept[len(kept)-1])
	}
	if len(before) != maxKeptUIDs || before[0] != "u0" {
		t.Error("the record of an earlier plan was changed")
	}
	if definition.keepFor(instance(-1), true) || len(definition.item.Kept) != maxKeptUIDs || definition.item.Kept[0] != "u2" {
		t.Error("what was handed over counts as orphaned")
	}
	namespace := &unit{}
	if !namespace.keepFor(instance(1), false) || !namespace.item.Keeps || namespace.item.Kept != nil {
		t.Errorf("namespace: %+v", namespace.item)
	}
}

// TestAnOrphanWithReferencesGoesFirst: otherwise the garbage collector would delete it together with the last object
// that it refers to.
func TestAnOrphanWithReferencesGoesFirst(t *testing.T) {
	web, data := Key{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, Key{Kind: "ConfigMap", Namespace: "shop", Name: "data"}
	ownership := Ownership{OwnerID: theOwner.ID, Ref: theOwner.Ref}
	for _, references := range []bool{true, false} {
		in := Input{
			Cause: Deleting, Name: reconcilerName, Owner: theOwner,
			Recorded: []v1alpha1.InventoryItem{
				{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "u-web", DeleteOrder: -1, DependsOn: []string{referenceTo(data)}},
				{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "data", UID: "u-data", DeletePolicy: v1alpha1.DeletePolicyOrphan},
			},
			Live: map[Key]Observation{
				web:  {Existence: Present, UID: "u-web", ResourceVersion: "1", Ownership: ownership},
				data: {Existence: Present, UID: "u-data", ResourceVersion: "2", Ownership: ownership, HasOwnerReferences: references},
			},
		}
		p := check.Must(Next(in))(t)
		var steps []string
		for _, s := range p.Steps {
			steps = append(steps, fmt.Sprint(s.Verb, " ", s.Key.Name, " ", s.Removes))
		}
		want := "[orphan data [u-web]]"
		if !references {
			want = "[delete web []]"
		}
		if got := fmt.Sprint(steps); got != want {
			t.Errorf("references %t: got %s, want %s", references, got, want)
		}
	}
}

// TestBuiltInGroups: no type of the server itself counts as one that needs an operator.
func TestBuiltInGroups(t *testing.T) {
	groups := scheme.Scheme.PrioritizedVersionsAllGroups()
	if len(groups) < 20 {
		t.Fatalf("%d groups", len(groups))
	}
	for _, gv := range groups {
		u := &unit{key: Key{Group: gv.Group, Kind: "Thing"}, live: Observation{Existence: Present, Finalizers: []string{"example.com/x"}}}
		if u.mayNeedOperator() {
			t.Errorf("group %s", gv.Group)
		}
	}
	for _, group := range []string{"example.com", "gateway.networking.k8s.io", "app.k8s.io"} {
		if u := (&unit{key: Key{Group: group, Kind: "Thing"}}); !u.mayNeedOperator() {
			t.Errorf("group %s counts as built in", group)
		}
	}
}

// A reconciler of another name that shares the record gives away what is ours. In a deletion that is found out before the first step.
func TestAnObjectThatIsReleasedByMistakeIsDeletedWithTheComponent(t *testing.T) {
	ours := Ownership{OwnerID: theOwner.ID, Ref: theOwner.Ref}
	rekeyed := func(item *v1alpha1.InventoryItem) { *item = Rekeyed([]v1alpha1.InventoryItem{*item})[0] }
	sealed := func(item *v1alpha1.InventoryItem) { item.Seal = "seal" }
	controlled := ours
	controlled.Controller = Controller{Kind: "Shop", Name: "other", UID: "u-other"}
	ownController := ours
	ownController.Controller = Controller{Kind: "Shop", Name: "main", UID: theOwner.Ref.UID}
	marked := ours
	marked.OtherOwners = []string{"Helm release shop/web"}
	earlierOne := ours
	earlierOne.Ref.UID = "u-earlier"
	for name, test := range map[string]struct {
		ownership Ownership
		change    func(item *v1alpha1.InventoryItem)
		awaited   bool
		want      Verb // empty if there is no step
	}{
		"another operator gave it away":       {ownership: ours, change: rekeyed, want: VerbDelete},
		"it has a seal":                       {ownership: ours, change: sealed, want: VerbDelete},
		"it was handed over":                  {ownership: ours, want: VerbOrphan},
		"its controller is the component":     {ownership: ownController, change: rekeyed, want: VerbDelete},
		"it has the controller of another":    {ownership: controlled, change: rekeyed, want: VerbOrphan},
		"it has the mark of another tool":     {ownership: marked, change: rekeyed, want: VerbOrphan},
		"only its label is ours":              {ownership: Ownership{OwnerID: theOwner.ID}, change: rekeyed, want: VerbOrphan},
		"only its annotation is ours":         {ownership: Ownership{Ref: theOwner.Ref}, change: rekeyed, want: VerbOrphan},
		"it is of an earlier component":       {ownership: earlierOne, change: rekeyed},
		"it is of another component":          {ownership: Ownership{OwnerID: theOther.ID, Ref: theOther.Ref}, change: rekeyed},
		"another component waits for it":      {ownership: ours, change: rekeyed, awaited: true, want: VerbOrphan},
		"it was created again with our label": {ownership: ours, change: func(item *v1alpha1.InventoryItem) { item.UID = "u-before" }, want: VerbDelete},
	} {
		t.Run(name, func(t *testing.T) {
			item := v1alpha1.InventoryItem{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a", UID: "u1", Digest: "d", Phase: vocabulary.PhaseReleased}
			if test.change != nil {
				test.change(&item)
			}
			key := KeyOf(item)
			in := Input{
				Cause: Deleting, Name: "shop.example.com", Owner: theOwner, Recorded: []v1alpha1.InventoryItem{item}, Now: time.Now(),
				Live: map[Key]Observation{key: {Existence: Present, UID: "u1", ResourceVersion: "7", Seal: "seal", Ownership: test.ownership}},
			}
			if test.awaited {
				in.AwaitedBy = map[Key]string{key: "Shop shop/other"}
			}
			p := check.Must(Next(in))(t)
			var got Verb
			for _, step := range p.Steps {
				got = step.Verb
			}
			check.Same(t, test.want, got)
			if corrected := test.want == VerbDelete && item.UID == "u1"; p.MustRecord != corrected {
				t.Errorf("the record is durable before the step: %t", p.MustRecord)
			}
		})
	}
}

// An apply records anew what is desired; what is not was handed over, perhaps right before a crash.
func TestAnObjectThatIsDesiredIsNotReleasedForEver(t *testing.T) {
	for _, desired := range []bool{true, false} {
		u := &unit{
			item: v1alpha1.InventoryItem{UID: "u1", Digest: "d", Phase: vocabulary.PhaseReleased},
			live: Observation{Existence: Present, UID: "u1", Ownership: Ownership{OwnerID: theOwner.ID, Ref: theOwner.Ref}},
		}
		if desired {
			u.desired = &Desired{}
		}
		if got := u.isReleasedByMistake(Input{Owner: theOwner}); got != desired {
			t.Errorf("desired %t: %t", desired, got)
		}
	}
}

func TestAnObjectThatMovesToAnotherGroupIsNotDeleted(t *testing.T) {
	old, moved := Key{Kind: "Event", Namespace: "shop", Name: "a"}, Key{Group: "events.k8s.io", Kind: "Event", Namespace: "shop", Name: "a"}
	present := func(uid types.UID) Observation {
		return Observation{Existence: Present, UID: uid, ResourceVersion: "1", Ownership: Ownership{OwnerID: theOwner.ID, Ref: theOwner.Ref}}
	}
	for _, test := range []struct {
		name     string
		other    Observation
		live     Observation
		policy   v1alpha1.DeletePolicy
		recorded bool   // whether the old key stays in the record
		step     string // about the old key
		waits    bool
	}{
		{name: "it is the same object", other: present("u1"), live: present("u1")},
		{name: "it is the same object, which is to be orphaned", other: present("u1"), live: present("u1"), policy: v1alpha1.DeletePolicyOrphan},
		{name: "the old group cannot be read", other: present("u1"), live: Observation{Message: "the server is busy"}},
		{name: "neither has a uid", other: present(""), live: Observation{Message: "the server is busy"}, recorded: true},
		{name: "it is another object", other: present("u2"), live: present("u1"), recorded: true, step: "delete"},
		{name: "the object of the new group does not exist", other: Observation{Existence: Absent}, live: present("u1"), recorded: true, step: "delete"},
		{name: "the object of the new group cannot be read", other: Observation{Message: "the server is busy"}, live: present("u1"), recorded: true, waits: true},
		{name: "the object of the new group was not looked for", other: Observation{Existence: NotFetched}, live: present("u1"), recorded: true, waits: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			set := defaultPolicies()
			set.Order.Apply = 1 // what is written later holds up no removal
			p := check.Must(Next(Input{
				Name: reconcilerName, Owner: theOwner, Now: startOfTime,
				Desired: []Desired{{Key: moved, Version: "v1", Policies: set, Digest: "1"}},
				Recorded: []v1alpha1.InventoryItem{
					{Version: "v1", Kind: old.Kind, Namespace: old.Namespace, Name: old.Name, UID: "u1", Digest: "1", DeletePolicy: test.policy},
				},
				Live: map[Key]Observation{old: test.live, moved: test.other, namespaceKey("shop"): {Existence: Present, UID: "n"}},
			}))(t)
			recorded, step, waits := false, "", false
			for _, item := range p.Inventory {
				recorded = recorded || KeyOf(item) == old
			}
			for _, s := range p.Steps {
				if s.Key == old {
					step = string(s.Verb)
				}
			}
			for _, wait := range p.Waiting {
				waits = waits || wait.Key == old && strings.Contains(wait.Message, `in the group "events.k8s.io"`)
			}
			if recorded != test.recorded || step != test.step || waits != test.waits {
				t.Errorf("recorded %t, step %q, waits %t\n%s", recorded, step, waits, p)
			}
		})
	}
}

// TestASharedTypeIsNeitherWrittenNorRecorded plans for an instance and its shared type in each state of the type.
func TestASharedTypeIsNeitherWrittenNorRecorded(t *testing.T) {
	definition := Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "foos.example.com"}
	foo := Key{Group: "example.com", Kind: "Foo", Namespace: "shop", Name: "one"}
	defines := []v1alpha1.TypeInfo{{Group: "example.com", Kind: "Foo"}}
	present := Observation{Existence: Present, UID: "u1", ResourceVersion: "7", Shared: "abc 1.0.0", Status: Status{Readiness: Ready}}
	accepting, deleting := present, present
	accepting.Status = Status{Readiness: NotReady, Message: "names are not accepted"}
	deleting.DeletionTimestamp = time.Unix(1, 0)
	owned := present
	owned.Shared, owned.Ownership = "", Ownership{OwnerID: theOwner.ID, Ref: theOwner.Ref}
	former := v1alpha1.InventoryItem{Group: definition.Group, Version: "v1", Kind: definition.Kind, Name: definition.Name, UID: "u1", Digest: "d", Defines: defines}
	tests := []struct {
		name     string
		live     Observation
		recorded []v1alpha1.InventoryItem
		failed   bool
		want     []string
	}{
		{"it is ready", present, nil, false, []string{"create one", "2 recorded 1, settled 1"}},
		{"it is ready, and a former version has recorded it", present, []v1alpha1.InventoryItem{former}, false, []string{"create one", "2 recorded 1, settled 1"}},
		{"it is not ready", accepting, nil, false, []string{"foos.example.com NotReady", "one Order", "2 recorded 1, settled 0"}},
		{"it is being deleted", deleting, nil, false, []string{"foos.example.com Terminating", "one Order", "2 recorded 1, settled 0"}},
		{"it is not known", Observation{Message: "cannot be read"}, nil, false, []string{"foos.example.com Unknown", "one Order", "2 recorded 1, settled 0"}},
		{"it is not known, and a former version has recorded it", Observation{Message: "cannot be read"}, []v1alpha1.InventoryItem{former}, false, []string{"foos.example.com Unknown", "one Order", "2 recorded 2, settled 0"}},
		{"it has the label of its former owner", owned, []v1alpha1.InventoryItem{former}, false, []string{"create one", "2 recorded 2, settled 1"}},
		{"it does not exist", Observation{Existence: Absent}, []v1alpha1.InventoryItem{former}, false, []string{"foos.example.com Unknown", "one Order", "2 recorded 1, settled 0"}},
		{"its last write failed", present, nil, true, []string{"foos.example.com StepFailed", "one Order", "2 recorded 1, settled 0"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in := Input{
				Name: reconcilerName, Owner: theOwner, Recorded: test.recorded, Failed: map[Key]Failure{},
				Desired: []Desired{
					{Key: definition, Version: "v1", Policies: defaultPolicies(), Digest: "other", Defines: defines, Shared: true},
					{Key: foo, Version: "v1", Policies: defaultPolicies(), Digest: "d"},
				},
				Live: map[Key]Observation{definition: test.live, foo: {Existence: Absent}},
			}
			if test.failed {
				in.Failed[definition] = Failure{Message: "it breaks objects"}
			}
			p := check.Must(Next(in))(t)
			var got []string
			for _, step := range p.Steps {
				got = append(got, fmt.Sprint(step.Verb, " ", step.Key.Name))
			}
			for _, wait := range p.Waiting {
				got = append(got, wait.Key.Name+" "+string(wait.Reason))
			}
			got = append(got, fmt.Sprintf("%d recorded %d, settled %d", p.Total, len(p.Inventory), p.Settled))
			if diff := cmp.Diff(test.want, got); diff != "" || len(p.Gone) > 0 {
				t.Errorf("-want +got:\n%s, gone %v", diff, p.Gone)
			}
			if p.Inventory[len(p.Inventory)-1].Kind != "Foo" {
				t.Errorf("recorded: %v", p.Inventory)
			}
		})
	}
}
