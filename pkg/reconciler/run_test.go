// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
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
		if diff := cmp.Diff([]plan.Note{{Key: key, Reason: report.NoteRecreated, Message: test.want}}, c.notes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
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
	next, err := plan.Next(c.in.Input)
	if err != nil {
		t.Fatal(err)
	}
	if len(next.Inventory) != 1 || next.Inventory[0].Finished != "" || next.Done() || len(c.returned) != 1 {
		t.Errorf("recorded %+v, returned %v, and the plan is\n%s", next.Inventory, c.returned, next)
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
		"the record was saved":      {Outcome{Inventory: v1alpha1.Inventory{Items: []v1alpha1.InventoryItem{item}}}, found + "; it is recorded now"},
		"the record was not saved":  {Outcome{}, found},
		"the caller has to save it": {Outcome{Inventory: v1alpha1.Inventory{Items: []v1alpha1.InventoryItem{item}}, Unrecorded: true}, found},
	} {
		test.outcome.Notes = []report.Note{{Key: report.Key(plan.KeyOf(item)), Reason: report.WarnOrphanFound, Warning: true, Message: found}}
		got, err := new(Reconciler).conclude(t.Context(), test.outcome, nil)
		if err != nil || got.Notes[0].Message != test.want {
			t.Errorf("%s: %q, error %v", name, got.Notes[0].Message, err)
		}
	}
}
