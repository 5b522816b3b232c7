// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

func TestARepairConcernsWhatWasMadeOfItsManifestAndRemovesNothing(t *testing.T) {
	key := func(name string) plan.Key { return plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: name} }
	desired := func(name string, needs ...string) plan.Desired {
		d := plan.Desired{Key: key(name), Digest: "1"}
		for _, need := range needs {
			d.Policies.DependsOn = append(d.Policies.DependsOn, policy.Reference(key(need)))
		}
		return d
	}
	in := plan.Input{Retain: map[plan.Key]bool{}}
	for name, digest := range map[string]string{"same": "1", "needs-same": "1", "needs-other": "1", "needs-that": "1", "other": "2", "unconfirmed": "", "dropped": "1"} {
		in.Recorded = append(in.Recorded, v1alpha1.InventoryItem{Kind: "ConfigMap", Namespace: "shop", Name: name, Digest: digest})
	}
	all := []plan.Desired{
		desired("needs-that", "needs-other"), desired("same"), desired("needs-same", "same"), desired("needs-other", "other"), desired("other"), desired("unconfirmed"), desired("new"),
	}
	in.Desired = all
	keepOthers(&in)
	var left []string
	for _, d := range in.Desired {
		left = append(left, d.Key.Name)
	}
	if diff := cmp.Diff([]string{"same", "needs-same"}, left); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, item := range in.Recorded {
		if !in.Retain[plan.KeyOf(item)] {
			t.Errorf("%s may be removed", item.Name)
		}
	}
	in.RepairOnly, in.Cause, in.Name, in.Live = true, plan.Applying, "corbel.example.com", map[plan.Key]plan.Observation{key("same"): {Existence: plan.Unknown}, key("needs-same"): {Existence: plan.Unknown}}
	for _, item := range in.Recorded {
		if _, known := in.Live[plan.KeyOf(item)]; !known {
			in.Live[plan.KeyOf(item)] = plan.Observation{Existence: plan.Absent}
		}
	}
	if next, err := plan.Next(in); err != nil || len(next.Inventory) != len(in.Recorded) || len(next.Retained) > 0 {
		t.Errorf("%v: %d of %d objects stay on record, retained %v", err, len(next.Inventory), len(in.Recorded), next.Retained)
	}
	if all[0].Key.Name != "needs-that" || all[6].Key.Name != "new" {
		t.Error("the set itself was changed")
	}
}
