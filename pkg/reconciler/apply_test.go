// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

func TestBadInputIsOneErrorAndWritesNothing(t *testing.T) {
	b := newBench(t)
	nameless := config("", "1")
	unknown := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "unserved.example.com/v1", "kind": "Mystery", "metadata": map[string]any{"name": "m"},
	}}
	_, err := b.apply(
		config("good", "1"),
		config("policy", "1", "update-policy", "overwrite"),
		config("order", "1", "apply-order", "40000"),
		config("twice", "1"), config("twice", "2"),
		config("later", "1", "depends-on", "ConfigMap/good"),
		nameless, unknown, nil,
	)
	if _, invalid := errors.AsType[*reconciler.InvalidError](err); !invalid {
		t.Fatalf("got %v, want an InvalidError", err)
	}
	for _, part := range []string{"policy", "overwrite", "order", "40000", "twice", "Mystery", "nil", "name"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q:\n%v", part, err)
		}
	}
	if b.get("good") != nil || b.records > 0 || len(b.inventory.Items) > 0 {
		t.Error("something was written or recorded")
	}
}

func TestNothingIsWrittenBeforeItIsRecorded(t *testing.T) {
	b := newBench(t)
	request := reconciler.ApplyRequest{Owner: b.owner(), Namespace: b.namespace, Objects: []client.Object{config("a", "1")}}
	outcome, err := b.engine.Apply(t.Context(), request)
	if err != nil || !outcome.Unrecorded || outcome.Done() || b.get("a") != nil {
		t.Fatalf("without a way to record: %+v, %v", outcome, err)
	}
	request.Inventory = outcome.Inventory
	outcome, err = b.engine.Apply(t.Context(), request)
	if err != nil || !outcome.Done() || b.get("a") == nil {
		t.Fatalf("with the record saved: %+v, %v", outcome, err)
	}
}

func TestAFailedRecordStopsBeforeTheFirstWrite(t *testing.T) {
	b := newBench(t)
	broken := errors.New("the status cannot be written")
	_, err := b.engine.Apply(t.Context(), reconciler.ApplyRequest{
		Owner: b.owner(), Namespace: b.namespace, Objects: []client.Object{config("a", "1")},
		Record: func(context.Context, reconciler.Inventory) error { return broken },
	})
	if !errors.Is(err, broken) || b.get("a") != nil {
		t.Errorf("got %v and %v, want the error and no object", err, b.get("a"))
	}
}

func TestDriftIsRepairedAndAdditionsOfOthersStay(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("a", "1"))
	drifted := b.get("a")
	drifted.Data["value"] = "changed by hand"
	drifted.Data["more"] = "added by hand"
	if err := b.Update(t.Context(), drifted); err != nil {
		t.Fatal(err)
	}
	if outcome := b.mustApply(config("a", "1")); outcome.Steps["replace"] != 1 {
		t.Errorf("steps %v, want one replace", outcome.Steps)
	}
	if got := b.get("a").Data["value"]; got != "1" {
		t.Errorf("value %q after the repair", got)
	}

	labelled := b.get("a")
	labelled.Labels["added"] = "by-another-client"
	if err := b.Update(t.Context(), labelled); err != nil {
		t.Fatal(err)
	}
	if outcome := b.mustApply(config("a", "1")); len(outcome.Steps) > 0 {
		t.Errorf("steps %v for a label that the manifest does not set", outcome.Steps)
	}

	if err := b.Delete(t.Context(), b.get("a")); err != nil {
		t.Fatal(err)
	}
	if outcome := b.mustApply(config("a", "1")); outcome.Steps["create"] != 1 {
		t.Errorf("steps %v, want one create", outcome.Steps)
	}
}

func TestStrippedOwnershipMetadataIsRestored(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("a", "1"))
	stripped := b.get("a")
	uid := stripped.UID
	stripped.Labels, stripped.Annotations = nil, nil
	if err := b.Update(t.Context(), stripped); err != nil {
		t.Fatal(err)
	}
	b.mustApply(config("a", "1"))
	got := b.get("a")
	if got.UID != uid || got.Labels[engineName+"/owner-id"] == "" || got.Annotations[engineName+"/owner"] == "" {
		t.Errorf("the label and annotation were not restored: %v", got.ObjectMeta)
	}
}

func TestUpdatePolicies(t *testing.T) {
	for policy, same := range map[string]bool{"replace": true, "ssa-merge": true, "ssa-override": true, "recreate": false} {
		t.Run(policy, func(t *testing.T) {
			b := newBench(t)
			b.mustApply(config("a", "1", "update-policy", policy))
			before := b.get("a")
			b.mustApply(config("a", "2", "update-policy", policy))
			after := b.get("a")
			if after.Data["value"] != "2" {
				t.Errorf("value %q, want 2", after.Data["value"])
			}
			if (before.UID == after.UID) != same {
				t.Errorf("uid %s became %s", before.UID, after.UID)
			}
			if outcome := b.mustApply(config("a", "2", "update-policy", policy)); len(outcome.Steps) > 0 {
				t.Errorf("steps %v without a change", outcome.Steps)
			}
		})
	}
}

func TestMissingNamespacesAreCreatedAndOrphaned(t *testing.T) {
	b := newBench(t)
	elsewhere := config("a", "1")
	elsewhere.SetNamespace(b.namespace + "-more")
	b.mustApply(elsewhere)
	// Another client creates an object in it; so the namespace must survive the deletion.
	inside := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere.GetNamespace(), Name: "inside"}}
	if err := b.Create(t.Context(), inside); err != nil {
		t.Fatal(err)
	}
	outcome, err := b.delete()
	if err != nil || !outcome.Done() {
		t.Fatalf("delete: %v, waiting for %v", err, outcome.Waiting)
	}
	why := "released: it is in use by others: 1 object lives in it (listed by kubectl get configmaps --namespace " + elsewhere.GetNamespace() + ")"
	if !slices.ContainsFunc(outcome.Notes, func(note reconciler.Note) bool { return note.Message == why }) {
		t.Errorf("notes %v", outcome.Notes)
	}
	namespace := &corev1.Namespace{}
	if err := b.Get(t.Context(), client.ObjectKey{Name: elsewhere.GetNamespace()}, namespace); err != nil {
		t.Fatal(err)
	}
	if !namespace.DeletionTimestamp.IsZero() || namespace.Labels[engineName+"/owner-id"] != "" {
		t.Errorf("the namespace was not orphaned: %v", namespace.ObjectMeta)
	}
}
