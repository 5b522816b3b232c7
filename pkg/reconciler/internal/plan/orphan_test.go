// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
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
				{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "u-web", DeleteOrder: -1, DependsOn: []string{data.reference()}},
				{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "data", UID: "u-data", DeletePolicy: v1alpha1.DeletePolicyOrphan},
			},
			Live: map[Key]Observation{
				web:  {Existence: Present, UID: "u-web", ResourceVersion: "1", Ownership: ownership},
				data: {Existence: Present, UID: "u-data", ResourceVersion: "2", Ownership: ownership, HasOwnerReferences: references},
			},
		}
		p, err := Next(in)
		if err != nil {
			t.Fatal(err)
		}
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
