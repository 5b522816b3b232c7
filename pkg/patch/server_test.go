// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"errors"
	"os"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/widget"
	"github.com/corbel-run/corbel/test/widget/installed"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{})) }

// create makes a widget and starts a reconcile of it.
func create(t *testing.T, c client.Client) (*widget.Widget, *patch.Helper) {
	t.Helper()
	w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	w.Spec.Size = 3
	check.NoError(t, c.Create(t.Context(), w))
	w.Spec.Loaded = "from elsewhere"
	h := check.Must(patch.NewHelper(w, c, patch.WithFieldOwner("corbel-test"), patch.WithoutSpec()))(t)
	return w, h
}

// get returns the widget as the server has it.
func get(t *testing.T, c client.Client, w *widget.Widget) *widget.Widget {
	t.Helper()
	server := &widget.Widget{}
	check.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(w), server))
	return server
}

func TestServerAnswersConflicts(t *testing.T) {
	c := installed.On(t, env.Shared(t), nil)
	w, h := create(t, c)
	server := get(t, c, w)
	server.Labels = map[string]string{"x": "y"}
	check.NoError(t, c.Update(t.Context(), server))
	w.Status.Phase = "Working"
	if err := h.Commit(t.Context(), w); err != nil {
		t.Fatalf("a label is no reason to give up: %v", err)
	}
	server = get(t, c, w)
	if server.Status.Phase != "Working" || server.Labels["x"] != "y" || w.Labels["x"] != "y" {
		t.Errorf("after both: %+v", server)
	}
	server.Spec.Size = 4
	check.NoError(t, c.Update(t.Context(), server))
	w.Status.Phase = "Done"
	if err := h.Commit(t.Context(), w); !errors.Is(err, patch.ErrConflict) {
		t.Fatalf("another generation: %v", err)
	}
}

func TestServerPrunesWhatTheDefinitionLacks(t *testing.T) {
	c := installed.On(t, env.Shared(t), func(crd *apiextensionsv1.CustomResourceDefinition) {
		status := widget.StatusSchema(crd)
		delete(status, "phase")
		delete(status["record"].Items.Schema.Properties, "uid")
	})
	w, h := create(t, c)
	w.Status.Phase = "New"
	w.Status.Record = []widget.Item{{Name: "pump", UID: "1"}, {Name: "pipe", UID: "2"}}
	err := h.Commit(t.Context(), w)
	pruned, ok := errors.AsType[*patch.PrunedError](err)
	if !ok {
		t.Fatalf("error: %v", err)
	}
	want := &patch.PrunedError{Object: "Widget default/a", Fields: []string{"status.phase", "status.record[].uid"}}
	check.Equal(t, want, pruned)
	// The object in memory is what the server has; what the schema knows can be written.
	w.Status.Record = []widget.Item{{Name: "pump"}}
	if err := h.Patch(t.Context(), w); err != nil {
		t.Errorf("fields that the schema has: %v", err)
	}
	writes := h.Writes()
	w.Status.Phase = "New"
	if err := h.Commit(t.Context(), w); err == nil || h.Writes() == writes {
		t.Errorf("another try: %v after %d writes", err, h.Writes()-writes)
	}
}
