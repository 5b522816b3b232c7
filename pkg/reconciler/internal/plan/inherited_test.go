// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

func TestOnlyTheLabelAndTheRecordTogetherMakeAnObjectInherited(t *testing.T) {
	me := theOwner
	me.ForeignID = "id-foreign"
	for name, test := range map[string]struct {
		me        Owner
		recorded  bool
		ownership Ownership
		want      relation
		owner     string
	}{
		"the label and the record":                           {me, true, Ownership{OwnerID: "id-foreign", ForeignRef: "c/shop/main"}, inherited, "Shop shop/main under SAP component-operator-runtime"},
		"the label alone":                                    {me, false, Ownership{OwnerID: "id-foreign", ForeignRef: "c/shop/main"}, ownedByOther, "c/shop/main of SAP component-operator-runtime"},
		"the record alone":                                   {me, true, Ownership{}, unowned, ""},
		"the label of another one":                           {me, true, Ownership{OwnerID: "id-other", ForeignRef: "c/shop/other"}, ownedByOther, "c/shop/other of SAP component-operator-runtime"},
		"the label, and the annotation of another one of us": {me, true, Ownership{OwnerID: "id-foreign", Ref: theOther.Ref}, ownedByOther, theOther.Ref.Title()},
		"what another tool has, too":                         {me, true, Ownership{OwnerID: "id-foreign", OtherOwners: []string{"Argo CD application a"}}, ownedByOther, "Argo CD application a"},
		"nothing is inherited":                               {theOwner, true, Ownership{OwnerID: ""}, unowned, ""},
		"taken over before a crash":                          {me, true, Ownership{OwnerID: me.ID, Ref: me.Ref}, ours, ""},
	} {
		t.Run(name, func(t *testing.T) {
			item := v1alpha1.InventoryItem{Inherited: test.recorded}
			got, owner := relate(test.me, item, policy.Set{Adoption: v1alpha1.AdoptionPolicyIfUnowned}, Observation{Existence: Present, Ownership: test.ownership})
			if got != test.want || owner != test.owner {
				t.Errorf("relation %d of %q, want %d of %q", got, owner, test.want, test.owner)
			}
		})
	}
}

// An object that cannot be read is not forgotten, although the record has no uid of it.
func TestAnInheritedObjectThatCannotBeReadStaysOnRecord(t *testing.T) {
	me := theOwner
	me.ForeignID = "id-foreign"
	item := v1alpha1.InventoryItem{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a", Digest: v1alpha1.UnknownManifest, Inherited: true}
	for _, cause := range []Cause{Applying, Deleting} {
		p, err := Next(Input{Cause: cause, Name: "shop.example.com", Owner: me, Recorded: []v1alpha1.InventoryItem{item}, Now: time.Now()})
		if err != nil || len(p.Steps) > 0 || len(p.Waiting) != 1 || len(p.Inventory) != 1 || !p.Inventory[0].Inherited {
			t.Errorf("%d: %+v, %v", cause, p, err)
		}
	}
}

func TestAFinalizerOfSAPsRuntimeIsOneOfATypeWithTheNameOfTheReconciler(t *testing.T) {
	const name = "shop.example.com"
	definition := Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "shops.example.com"}
	service := Key{Group: "apiregistration.k8s.io", Kind: "APIService", Name: "v1.example.com"}
	for _, test := range []struct {
		key        Key
		finalizers []string
		want       bool
	}{
		{definition, []string{"x.y/z", name}, true},
		{service, []string{name}, true},
		{definition, []string{"customresourcecleanup.apiextensions.k8s.io"}, false},
		{definition, nil, false},
		{Key{Group: "example.com", Kind: "Shop", Namespace: "shop", Name: "child"}, []string{name}, false}, // a component of ours
	} {
		if got := HasForeignFinalizer(test.key, name, test.finalizers); got != test.want {
			t.Errorf("%s with %v: %t", test.key, test.finalizers, got)
		}
	}
}
