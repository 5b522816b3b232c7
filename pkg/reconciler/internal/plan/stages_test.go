// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// An instance that is orphaned in the same plan in which its type is deleted counts
// as one of another owner: no note must say that it goes first.
func TestAnOrphanedInstanceIsNoInstanceOfOurs(t *testing.T) {
	crd := Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "foos.example.com"}
	left := Key{Group: "example.com", Kind: "Foo", Namespace: "shop", Name: "left"}
	adopted := Key{Group: "example.com", Kind: "Foo", Namespace: "shop", Name: "adopted"}
	live := func(ownership Ownership) Observation {
		return Observation{Existence: Present, UID: "u1", ResourceVersion: "1", Ownership: ownership, Seal: "seal"}
	}
	ours := Ownership{OwnerID: theOwner.ID, Ref: theOwner.Ref}
	record := func(key Key) v1alpha1.InventoryItem {
		return v1alpha1.InventoryItem{Group: key.Group, Version: "v1", Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, UID: "u1", Phase: v1alpha1.PhaseApplied}
	}
	definition, orphan := record(crd), record(left)
	definition.Defines = []v1alpha1.TypeInfo{{Group: "example.com", Kind: "Foo"}}
	orphan.Seal = "seal"
	orphan.DeletePolicy = v1alpha1.DeletePolicyOrphan
	p, err := Next(Input{
		Cause: Deleting, Name: reconcilerName, Owner: theOwner, Now: startOfTime,
		Recorded: []v1alpha1.InventoryItem{definition, orphan, record(adopted)},
		Live: map[Key]Observation{
			crd:     live(ours),
			left:    live(Ownership{}), // our label and annotation are already removed
			adopted: live(Ownership{OwnerID: theOther.ID, Ref: theOther.Ref}),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Steps) != 1 || p.Steps[0].Key != crd || p.Steps[0].Guard != GuardNoInstancesElseOrphan {
		t.Fatalf("got\n%s", p)
	}
	if diff := cmp.Diff([]Key(nil), p.Steps[0].OwnInstances); diff != "" {
		t.Errorf("instances that count as ours (-want +got):\n%s", diff)
	}
}
