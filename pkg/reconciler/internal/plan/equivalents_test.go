// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

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
			p, err := Next(Input{
				Name: reconcilerName, Owner: theOwner, Now: startOfTime,
				Desired: []Desired{{Key: moved, Version: "v1", Policies: set, Digest: "1"}},
				Recorded: []v1alpha1.InventoryItem{
					{Version: "v1", Kind: old.Kind, Namespace: old.Namespace, Name: old.Name, UID: "u1", Digest: "1", DeletePolicy: test.policy},
				},
				Live: map[Key]Observation{old: test.live, moved: test.other, namespaceKey("shop"): {Existence: Present, UID: "n"}},
			})
			if err != nil {
				t.Fatal(err)
			}
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
