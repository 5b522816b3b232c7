// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

func (b *bench) request(objects ...client.Object) reconciler.ApplyRequest {
	return reconciler.ApplyRequest{
		Owner: b.owner(), Namespace: b.namespace, Objects: objects, Inventory: b.inventory, Record: b.record, Confidential: b.confidential,
	}
}

func TestRenderingNothingDeletesNothingUnlessThatIsAllowed(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("a", "1"), config("kept", "1", "delete-policy", "orphan"))
	outcome, err := b.apply()
	if _, invalid := errors.AsType[*reconciler.InvalidError](err); !invalid {
		t.Fatalf("got %v, want an InvalidError", err)
	}
	for _, part := range []string{"1 objects", "ConfigMap " + b.namespace + "/a", engineName + `/allow-empty: "true"`, "Release " + b.namespace + "/main"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
	if b.get("a") == nil || len(outcome.Inventory.Items) != 2 {
		t.Fatal("something was removed")
	}
	request := b.request()
	request.AllowEmpty = true
	if outcome, err = b.engine.Apply(t.Context(), request); err != nil || !outcome.Done() || b.get("a") != nil || b.get("kept") == nil {
		t.Fatalf("allowed: %v, waiting for %v", err, outcome.Waiting)
	}
}

func TestNothingIsNeededToApplyNothingToNothing(t *testing.T) {
	b := newBench(t)
	b.mustApply()
	b.mustApply(config("kept", "1", "delete-policy", "orphan-on-apply"))
	b.mustApply()
	if b.get("kept") == nil {
		t.Error("an orphan was deleted")
	}
}

func TestAComponentCannotManageWhatItStandsOn(t *testing.T) {
	b := newBench(t)
	object := func(version, kind, name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
		}}
	}
	request := b.request(
		config("credentials", "1"),
		config("fine", "1"),
		object("apiregistration.k8s.io/v1", "APIService", "v1.apps", map[string]any{"group": "apps", "version": "v1", "groupPriorityMinimum": int64(1), "versionPriority": int64(1)}),
		object("apiregistration.k8s.io/v1", "APIService", "v1beta1.metrics.k8s.io", map[string]any{"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": int64(1), "versionPriority": int64(1)}),
	)
	request.Protected = []reconciler.Key{{Kind: "ConfigMap", Namespace: b.namespace, Name: "credentials"}}
	_, err := b.engine.Apply(t.Context(), request)
	if _, invalid := errors.AsType[*reconciler.InvalidError](err); !invalid {
		t.Fatalf("got %v, want an InvalidError", err)
	}
	for _, part := range []string{"ConfigMap " + b.namespace + "/credentials: Release", "APIService v1.apps: ", `the group "apps"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
	if strings.Contains(err.Error(), "metrics.k8s.io") || strings.Contains(err.Error(), "fine") {
		t.Errorf("the error names what is fine: %v", err)
	}
	if b.get("fine") != nil || b.records > 0 {
		t.Error("something was written or recorded")
	}
}

func TestTheOwnerIsNoDependentOfItself(t *testing.T) {
	b := newBench(t)
	request := b.request(config("me", "1"))
	request.Owner = reconciler.Owner{Kind: "ConfigMap", Namespace: b.namespace, Name: "me", UID: "1"}
	if _, err := b.engine.Apply(t.Context(), request); err == nil || !strings.Contains(err.Error(), "or is it") {
		t.Errorf("got %v", err)
	}
}

func TestProtectedObjectsAreOrphanedByPruneAndDeletion(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("credentials", "1"), config("more", "1"), config("a", "1"))
	protected := []reconciler.Key{{Kind: "ConfigMap", Namespace: b.namespace, Name: "credentials"}, {Kind: "ConfigMap", Namespace: b.namespace, Name: "more"}}
	request := b.request(config("a", "1"), config("more", "1"))
	request.Protected = protected[:1]
	outcome, err := b.engine.Apply(t.Context(), request)
	if err != nil || !outcome.Done() {
		t.Fatalf("apply: %v, waiting for %v", err, outcome.Waiting)
	}
	outcome, err = b.engine.Delete(t.Context(), reconciler.DeleteRequest{Owner: b.owner(), Inventory: outcome.Inventory, Protected: protected})
	if err != nil || !outcome.Done() {
		t.Fatalf("delete: %v, waiting for %v", err, outcome.Waiting)
	}
	for _, name := range []string{"credentials", "more"} {
		if left := b.get(name); left == nil || left.Labels[engineName+"/owner-id"] != "" {
			t.Errorf("%s was not orphaned without label and annotation: %v", name, left)
		}
	}
	if b.get("a") != nil {
		t.Error("the rest was not deleted")
	}
}
