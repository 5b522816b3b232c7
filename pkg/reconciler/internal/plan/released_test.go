// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

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
			p, err := Next(in)
			if err != nil {
				t.Fatal(err)
			}
			var got Verb
			for _, step := range p.Steps {
				got = step.Verb
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
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

func TestTheObjectsOfAFormerReconcilerAreInherited(t *testing.T) {
	me := theOwner
	me.Former = "store.example.com"
	of := func(mark Mark, others ...string) Ownership {
		return Ownership{OtherOwners: append([]string{mark.Ref.Title() + " of " + mark.Reconciler}, others...), Marks: []Mark{mark}}
	}
	former := Mark{Reconciler: me.Former, OwnerID: me.ID, Ref: me.Ref}
	third, earlier, copied, stranger := former, former, former, former
	third.Reconciler, earlier.Ref.UID, copied.Ref, stranger.OwnerID = "third.example.com", "u-earlier", OwnerRef{}, theOther.ID
	shared, written := of(former), of(former)
	shared.OwnerID, shared.Ref = theOther.ID, theOther.Ref
	written.OwnerID, written.Ref = me.ID, me.Ref
	for name, test := range map[string]struct {
		me        Owner
		ownership Ownership
		want      relation
	}{
		"it is of the former reconciler":        {me, of(former), inherited},
		"no reconciler is followed":             {theOwner, of(former), ownedByOther},
		"it is of another reconciler":           {me, of(third), ownedByOther},
		"it is of an earlier component":         {me, of(earlier), ownedByOther},
		"it has the label only":                 {me, of(copied), ownedByOther},
		"it is of a component elsewhere":        {me, of(stranger), ownedByOther},
		"it is of another tool as well":         {me, of(former, "Helm release shop/web"), ownedByOther},
		"it is of another component of ours":    {me, shared, ownedByOther},
		"it was written, and still has the old": {me, written, ours},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := relate(test.me, v1alpha1.InventoryItem{}, policy.Set{Adoption: v1alpha1.AdoptionPolicyIfUnowned}, Observation{Existence: Present, Ownership: test.ownership})
			if got != test.want {
				t.Errorf("relation %d, want %d", got, test.want)
			}
		})
	}
}
