// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
	"github.com/corbel-run/corbel/test/check"
)

var lastingKey = Key{Kind: "ConfigMap", Namespace: "shop", Name: "lease"}

// planLasting plans for an object of ours that was seen and accepted, and was made of the manifest with the value.
func planLasting(t *testing.T, policies policy.Set, value string, live Observation) Plan {
	t.Helper()
	d := desiredObject(lastingKey, "1", policies)
	live.Existence, live.UID, live.ResourceVersion = Present, "u1", "7"
	live.Ownership, live.Status.Readiness = Ownership{OwnerID: theOwner.ID, Ref: theOwner.Ref}, Ready
	p := check.Must(Next(Input{
		Name: reconcilerName, Owner: theOwner, Desired: []Desired{d}, Live: map[Key]Observation{lastingKey: live},
		Recorded: []v1alpha1.InventoryItem{{
			Version: d.Version, Kind: lastingKey.Kind, Namespace: lastingKey.Namespace, Name: lastingKey.Name, UID: "u1",
			Digest: desiredObject(lastingKey, value, policies).Digest, ObservedHash: "seen", AppliedHash: "accepted",
			Phase: vocabulary.PhaseApplied, Origin: vocabulary.OriginManifest,
		}},
	}))(t)
	return p
}

// An object that is edited all the time is not looked at after every edit. What was
// reported about it is neither withdrawn nor invented meanwhile, and nothing is recorded.
func TestWhatWasReportedOfAnObjectHoldsUntilItIsLookedAtAgain(t *testing.T) {
	drift := &report.Drift{Fields: []string{"data.value"}, Manager: "kubectl-edit"}
	for name, tc := range map[string]struct {
		policy v1alpha1.DriftPolicy
		live   Observation
		want   []Deviation
	}{
		"it had drifted":                 {v1alpha1.DriftPolicyReport, Observation{ObservedHash: "new", Deferred: true, Drift: drift}, []Deviation{{Key: lastingKey, Drift: *drift}}},
		"it had not drifted":             {v1alpha1.DriftPolicyReport, Observation{ObservedHash: "new", Deferred: true}, nil},
		"it is not to be reported":       {v1alpha1.DriftPolicyIgnore, Observation{ObservedHash: "new", Deferred: true, Drift: drift}, nil},
		"it is repaired after a look":    {v1alpha1.DriftPolicyRepair, Observation{ObservedHash: "new", Deferred: true, Drift: drift}, nil},
		"it is known to be right again":  {v1alpha1.DriftPolicyReport, Observation{ObservedHash: "seen"}, nil},
		"it was looked at, and is right": {v1alpha1.DriftPolicyReport, Observation{ObservedHash: "new", AppliedHash: "accepted"}, nil},
	} {
		policies := defaultPolicies()
		policies.Drift = tc.policy
		p := planLasting(t, policies, "1", tc.live)
		check.EqualNamed(t, name+": reported", tc.want, p.Deviations)
		if len(p.Steps) > 0 || tc.live.Deferred && p.Inventory[0].ObservedHash != "seen" {
			t.Errorf("%s: steps %v, recorded as seen is %q", name, p.Steps, p.Inventory[0].ObservedHash)
		}
	}
}

// A hash of an earlier version is compared in that version, and replaced only by one of the same values.
func TestAnAppliedHashOfAnEarlierVersionIsRecordedAnewOnlyIfNothingHasDrifted(t *testing.T) {
	for name, tc := range map[string]struct {
		policy           v1alpha1.DriftPolicy
		earlier          string
		accepted         string
		steps, deviation int
	}{
		"the same":             {v1alpha1.DriftPolicyRepair, "accepted", "2:accepted", 0, 0},
		"drifted":              {v1alpha1.DriftPolicyRepair, "other", "accepted", 1, 0},
		"drifted, is reported": {v1alpha1.DriftPolicyReport, "other", "accepted", 0, 1},
	} {
		policies := defaultPolicies()
		policies.Drift = tc.policy
		p := planLasting(t, policies, "1", Observation{ObservedHash: "new", AppliedHash: "2:accepted", EarlierAppliedHash: tc.earlier})
		if len(p.Steps) != tc.steps || len(p.Deviations) != tc.deviation || p.Inventory[0].AppliedHash != tc.accepted {
			t.Errorf("%s: steps %v, deviations %v, recorded %+v", name, p.Steps, p.Deviations, p.Inventory[0])
		}
	}
}

// What was accepted of one manifest says nothing about the paths of another one. An object
// that counts as unchanged because its revision is has not drifted when others change it.
func TestAnObjectOfAnotherManifestInTheSameRevisionHasNotDrifted(t *testing.T) {
	for name, tc := range map[string]struct {
		recorded string // of which manifest the object was made
		want     Verb
	}{
		"of another manifest": {"0", ""},
		"of the same":         {"1", VerbReplace},
	} {
		policies := defaultPolicies()
		policies.Revision = "r"
		p := planLasting(t, policies, tc.recorded, Observation{ObservedHash: "new", AppliedHash: "another"})
		var verb Verb
		if len(p.Steps) > 0 {
			verb = p.Steps[0].Verb
		}
		if verb != tc.want || p.Inventory[0].ObservedHash != "seen" {
			t.Errorf("%s: the record says seen %q, and the plan is\n%s", name, p.Inventory[0].ObservedHash, p)
		}
	}
}

// A number of replicas that was set by hand is reported as long as it is another one
// than that of the manifest, unless an autoscaler decides about it.
func TestANumberOfReplicasThatWasSetByHandIsReported(t *testing.T) {
	key := Key{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "api"}
	for name, tc := range map[string]struct {
		desired  *int64
		scaled   *Scaling
		drift    v1alpha1.DriftPolicy
		beside   *Key
		reported bool
	}{
		"by hand":                      {desired: new(int64(3)), scaled: &Scaling{Path: "spec.replicas", Replicas: 1, Manager: "kubectl"}, reported: true},
		"under report":                 {desired: new(int64(3)), scaled: &Scaling{Path: "spec.replicas", Replicas: 1}, drift: v1alpha1.DriftPolicyReport, reported: true},
		"under ignore":                 {desired: new(int64(3)), scaled: &Scaling{Path: "spec.replicas", Replicas: 1}, drift: v1alpha1.DriftPolicyIgnore},
		"the same number":              {desired: new(int64(3)), scaled: &Scaling{Path: "spec.replicas", Replicas: 3}},
		"not in the manifest":          {scaled: &Scaling{Path: "spec.replicas", Replicas: 1}},
		"not scaled":                   {desired: new(int64(3))},
		"by an autoscaler":             {desired: new(int64(3)), scaled: &Scaling{Path: "spec.replicas", Replicas: 1, Autoscaler: true}},
		"an autoscaler is a dependent": {desired: new(int64(3)), scaled: &Scaling{Path: "spec.replicas", Replicas: 1}, beside: &key},
		"an autoscaler of another one": {desired: new(int64(3)), scaled: &Scaling{Path: "spec.replicas", Replicas: 1}, beside: &Key{Kind: "Deployment", Name: "api"}, reported: true},
	} {
		policies := defaultPolicies()
		if tc.drift != "" {
			policies.Drift = tc.drift
		}
		scaler := desiredObject(Key{Kind: "ConfigMap", Namespace: "shop", Name: "scaler"}, "1", defaultPolicies())
		scaler.ScaleTarget = tc.beside
		d := desiredObject(key, "1", policies)
		live := Observation{Existence: Present, UID: "u", ObservedHash: "s", Ownership: Ownership{OwnerID: theOwner.ID, Ref: theOwner.Ref}, Scaled: tc.scaled, Status: Status{Readiness: Ready}}
		p, err := Next(Input{Name: reconcilerName, Owner: theOwner, Desired: []Desired{d, scaler}, Now: startOfTime,
			Recorded: []v1alpha1.InventoryItem{{Group: key.Group, Version: "v1", Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, UID: "u", ObservedHash: "s", AppliedHash: "a", Digest: d.Digest, Replicas: tc.desired}},
			Live:     map[Key]Observation{key: live, namespaceKey("shop"): {Existence: Present, UID: "n"}}})
		if err != nil || (len(p.Deviations) == 1) != tc.reported {
			t.Errorf("%s: %v, got\n%s", name, err, p)
		}
	}
}
