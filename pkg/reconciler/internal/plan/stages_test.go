// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

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

// TestInstancesThatNeedAnOperatorGoBeforeTheWorkloads: no definition of the component shows that one of the workloads looks
// after the instance.
func TestInstancesThatNeedAnOperatorGoBeforeTheWorkloads(t *testing.T) {
	web := Key{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "operator"}
	held, free := Key{Group: "example.com", Kind: "Foo", Namespace: "shop", Name: "held"}, Key{Group: "example.com", Kind: "Foo", Namespace: "shop", Name: "free"}
	balanced := Key{Group: "networking.k8s.io", Kind: "Ingress", Namespace: "shop", Name: "web"}
	live := func(deleting bool, finalizers ...string) Observation {
		o := Observation{Existence: Present, UID: "u1", ResourceVersion: "1", Ownership: Ownership{OwnerID: theOwner.ID, Ref: theOwner.Ref}, Finalizers: finalizers}
		if deleting {
			o.DeletionTimestamp = startOfTime
		}
		return o
	}
	for name, test := range map[string]struct {
		held Observation
		want []Key
	}{
		"at the start":          {live(false, "example.com/cleanup"), []Key{held}},
		"while it is held":      {live(true, "example.com/cleanup"), nil},
		"while it is not known": {Observation{}, nil},
		"without a finalizer":   {live(false), []Key{web, free, held, balanced}},
		"when it is gone":       {Observation{Existence: Absent}, []Key{web, free, balanced}},
	} {
		in := Input{Cause: Deleting, Name: reconcilerName, Owner: theOwner, Now: startOfTime, Live: map[Key]Observation{
			web: live(false), free: live(false), balanced: live(false, "example.com/balancer"), held: test.held,
		}}
		for key := range in.Live {
			in.Recorded = append(in.Recorded, v1alpha1.InventoryItem{Group: key.Group, Version: "v1", Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, UID: "u1", Phase: vocabulary.PhaseApplied})
		}
		p, err := Next(in)
		if err != nil {
			t.Fatal(err)
		}
		var got []Key
		for _, s := range p.Steps {
			got = append(got, s.Key)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
