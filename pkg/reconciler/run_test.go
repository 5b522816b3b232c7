// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
	"github.com/corbel-run/corbel/test/check"
)

func TestARefusedCreationOfAnObjectThatWasNotReadIsTriedAgainUnlessTheServerHasTooMuchToDo(t *testing.T) {
	for name, test := range map[string]struct {
		cause  error
		failed bool
	}{
		"it is invalid":                 {cause: apierrors.NewBadRequest("no")},
		"the server has too much to do": {cause: apierrors.NewTooManyRequests("later", 1), failed: true},
	} {
		key := plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "a"}
		c := newCall(input{Input: plan.Input{Live: map[plan.Key]plan.Observation{key: {Existence: plan.NotFetched}}, Failed: map[plan.Key]plan.Failure{}}})
		err := &execute.Error{Key: key, Verb: plan.VerbCreate, Class: execute.Failed, Err: test.cause}
		again := c.fold(plan.Plan{}, []plan.Result{{Step: plan.Step{Key: key, Verb: plan.VerbCreate}, Err: err}}, metav1.NewTime(time.Unix(0, 0)))
		if len(again) != 1 || again[0] != key {
			t.Errorf("%s: looked at again: %v", name, again)
		}
		if _, failed := c.in.Failed[key]; failed != test.failed || errors.Is(c.failures(), err) != test.failed {
			t.Errorf("%s: failed: %t, %v", name, failed, c.failures())
		}
	}
}

func TestARecreationSaysWhy(t *testing.T) {
	key := plan.Key{Kind: "Job", Namespace: "shop", Name: "a"}
	for name, test := range map[string]struct {
		policy v1alpha1.UpdatePolicy
		failed *plan.Failure
		want   string
	}{
		"its manifest has changed": {policy: v1alpha1.UpdatePolicyRecreate, want: "recreated: its manifest has changed, and its update policy is Recreate"},
		"the server does not change it": {policy: v1alpha1.UpdatePolicyRecreateOnImmutable, failed: &plan.Failure{Immutable: true, Message: "spec.template: field is immutable"},
			want: "recreated: spec.template: field is immutable"},
		"the process was stopped in between": {policy: v1alpha1.UpdatePolicyRecreateOnImmutable, want: "recreated: its manifest has changed, and its update policy is RecreateOnImmutable"},
	} {
		c := newCall(input{Input: plan.Input{Live: map[plan.Key]plan.Observation{}, Failed: map[plan.Key]plan.Failure{}}})
		if test.failed != nil {
			c.in.Failed[key] = *test.failed
		}
		step := plan.Step{Key: key, Verb: plan.VerbDelete, Reason: plan.ReasonRecreate, Desired: &plan.Desired{}}
		step.Desired.Policies.Update = test.policy
		c.countStep(plan.Result{Step: step})
		check.EqualNamed(t, name, []plan.Note{{Key: key, Reason: report.NoteRecreated, Message: test.want}}, c.notes)
	}
}

func TestAFailedHookIsNamedAndHoldsTheDeletion(t *testing.T) {
	key := plan.Key{Group: "batch", Kind: "Job", Namespace: "shop", Name: "backup"}
	c := newCall(input{Input: plan.Input{Cause: plan.Deleting}})
	outcome := c.outcome(plan.Plan{Waiting: []plan.Wait{{Key: key, Reason: report.WaitFailed, Message: "it tried too often"}}})
	failed, is := errors.AsType[*HookFailedError](c.failures())
	if !is || failed.Object != "Job shop/backup" || !strings.Contains(failed.Error(), "it tried too often") || outcome.Done() {
		t.Errorf("got %v, want a HookFailedError", c.failures())
	}
}

// An object that cannot be read when it is looked at for the last time stays on record until
// it is known to be gone.
func TestWhatMayBeThereAgainStaysOnRecord(t *testing.T) {
	item := v1alpha1.InventoryItem{
		Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a", UID: "gone", Digest: "d", Phase: vocabulary.PhaseApplied, Finished: vocabulary.FinishComplete,
	}
	c := newCall(input{Input: plan.Input{Cause: plan.Deleting, Live: map[plan.Key]plan.Observation{}}})
	c.recordAgain(item, plan.Observation{Message: "the server is busy"})
	next := check.Must(plan.Next(c.in.Input))(t)
	if len(next.Inventory) != 1 || next.Inventory[0].Finished != "" || next.Done() || len(c.notes) != 1 || c.notes[0].Key != plan.KeyOf(item) || !strings.Contains(c.notes[0].Message, "the server is busy") {
		t.Errorf("recorded %+v, notes %v, and the plan is\n%s", next.Inventory, c.notes, next)
	}
}

func TestANamespaceThatMayNotBeReadIsForbiddenWhenItIsMissing(t *testing.T) {
	const unreadable = `cannot be read: namespaces "shop" is forbidden: User "op" cannot get resource "namespaces" in API group "" at the cluster scope`
	key, namespace := plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "a"}, plan.Key{Kind: "Namespace", Name: "shop"}
	for name, test := range map[string]struct {
		policy    v1alpha1.MissingNamespacesPolicy
		seen      plan.Observation
		forbidden bool
	}{
		"it may not be read": {policy: v1alpha1.MissingNamespacesPolicyCreate, seen: plan.Observation{Forbidden: true, Message: unreadable}, forbidden: true},
		"it is not created":  {policy: v1alpha1.MissingNamespacesPolicyDoNotCreate, seen: plan.Observation{Forbidden: true, Message: unreadable}},
		"it was read":        {policy: v1alpha1.MissingNamespacesPolicyCreate, seen: plan.Observation{Existence: plan.Present}},
	} {
		c := newCall(input{Input: plan.Input{MissingNamespaces: test.policy,
			Live: map[plan.Key]plan.Observation{key: {Existence: plan.Absent}, namespace: test.seen}, Failed: map[plan.Key]plan.Failure{}}})
		gone := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "shop")
		failed := &execute.Error{Key: key, Verb: plan.VerbCreate, Class: execute.NamespaceGone, Err: gone}
		for range maxLooks + 1 {
			c.fold(plan.Plan{}, []plan.Result{{Step: plan.Step{Key: key, Verb: plan.VerbCreate}, Err: failed}}, metav1.NewTime(time.Unix(0, 0)))
		}
		refusal, forbidden := errors.AsType[*ForbiddenError](c.failures())
		if forbidden != test.forbidden || errors.Is(c.failures(), failed) == test.forbidden || (len(c.missing) > 0) != test.forbidden {
			t.Errorf("%s: %v, missing %v", name, c.failures(), c.missing)
		}
		if forbidden && refusal.Error() != "Namespace shop: does not exist, and is not created, because it "+unreadable {
			t.Errorf("%s: %v", name, refusal)
		}
	}
}

func TestAnOrphanIsRecordedOnlyIfTheInventoryNamesIt(t *testing.T) {
	const found = "found: it has the ownership label and annotation of this component, but was not in its inventory"
	item := v1alpha1.InventoryItem{Kind: "ConfigMap", Version: "v1", Namespace: "shop", Name: "a"}
	for name, test := range map[string]struct {
		outcome Outcome
		want    string
	}{
		"the record was saved":     {Outcome{Inventory: v1alpha1.Inventory{Items: []v1alpha1.InventoryItem{item}}}, found + "; it is recorded now"},
		"the record was not saved": {Outcome{}, found},
	} {
		test.outcome.Notes = []report.Note{{Key: report.Key(plan.KeyOf(item)), Reason: report.WarnOrphanFound, Warning: true, Message: found}}
		got, err := new(Reconciler).conclude(t.Context(), test.outcome, nil)
		if err != nil || got.Notes[0].Message != test.want {
			t.Errorf("%s: %q, error %v", name, got.Notes[0].Message, err)
		}
	}
}

// TestARecordedSharedTypeIsToBeOrphaned has a record of a former version, with a shared type and others.
func TestARecordedSharedTypeIsToBeOrphaned(t *testing.T) {
	s := &sharedTypes{byName: map[string]*sharedType{"foos.example.com": {}}}
	items := []v1alpha1.InventoryItem{
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: "foos.example.com"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: "others.example.com"},
		{Version: "v1", Kind: "ConfigMap", Name: "foos.example.com"},
	}
	for i, item := range s.released(items) {
		check.SameNamed(t, item.Kind+" "+item.Name+": orphaned", i == 0, item.DeletePolicy == v1alpha1.DeletePolicyOrphan)
	}
	check.SameNamed(t, "the record itself was changed", "", items[0].DeletePolicy)
}

func TestAnOwnerWaitsForObjectsOfOthersAndNotForever(t *testing.T) {
	now := time.Unix(1000, 0)
	key := plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "a"}
	a, b := plan.OwnerRef{Kind: "Shop", Namespace: "shop", Name: "a"}, plan.OwnerRef{Kind: "Shop", Namespace: "shop", Name: "b"}
	var h handovers
	expect := func(what string, owner plan.OwnerRef, at time.Time, want string) {
		t.Helper()
		if got := h.waitedFor(owner, at)[key]; got != want {
			t.Errorf("%s: %q waits for it, want %q", what, got, want)
		}
	}
	expect("no other owner", a, now, "")
	h.setWaiting(b, []plan.Key{key}, now)
	expect("another", a, now, "Shop shop/b")
	expect("the owner itself", b, now, "")
	expect("repeated in time", a, now.Add(waitingLife-time.Second), "Shop shop/b")
	expect("not repeated", a, now.Add(waitingLife), "")
	h.setWaiting(b, nil, now)
	expect("given up", a, now, "")
}

func TestWorkloadsThatAreReadyByTheRulesOfTheirType(t *testing.T) {
	set := &DesiredSet{}
	for _, object := range []struct{ group, kind, name, readyWhen string }{
		{"", "ConfigMap", "a", ""}, {"apps", "Deployment", "web", ""}, {"apps", "Deployment", "own", "true"}, {"apps", "DaemonSet", "log", ""},
		{"apps", "StatefulSet", "db", ""}, {"apps", "ReplicaSet", "set", ""}, {"batch", "Job", "migrate", ""}, {"other.example.com", "Deployment", "theirs", ""},
	} {
		manifest := &unstructured.Unstructured{Object: map[string]any{"kind": object.kind}}
		manifest.SetName(object.name)
		set.objects = append(set.objects, plan.Desired{
			Key: plan.Key{Group: object.group, Kind: object.kind, Name: object.name}, Policies: policy.Set{ReadyWhen: object.readyWhen}, Manifest: manifest,
		})
	}
	rules := []ReadyWhen{{Type: TypeInfo{Group: "apps", Kind: "DaemonSet"}, Expression: "true"}}
	names := func(set *DesiredSet) (all []string) {
		for _, manifest := range set.Workloads(rules) {
			all = append(all, manifest.GetKind()+" "+manifest.GetName())
		}
		return all
	}
	want := []string{"Deployment web", "StatefulSet db", "ReplicaSet set"}
	if got, packed := names(set), names(set.Pack(nil)); !slices.Equal(got, want) || !slices.Equal(packed, want) || names(nil) != nil {
		t.Errorf("%v, packed %v", got, packed)
	}
}

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
	check.Equal(t, []string{"same", "needs-same"}, left)
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
