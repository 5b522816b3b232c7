// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/report"
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
	if !slices.ContainsFunc(outcome.Notes, func(note report.Note) bool { return note.Message == why }) {
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
