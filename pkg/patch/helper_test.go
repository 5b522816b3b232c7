// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/widget"
)

var key = client.ObjectKey{Namespace: "ns", Name: "a"}

func stored() *widget.Widget {
	w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "uid-1", Generation: 2}}
	w.Spec.Size = 3
	w.Status.Phase = "Old"
	return w
}

// read returns the widget as the server has it.
func read(t *testing.T, c client.Reader) *widget.Widget {
	t.Helper()
	w := &widget.Widget{}
	check.NoError(t, c.Get(t.Context(), key, w))
	return w
}

// start starts a reconcile.
func start(t *testing.T, s *widget.Server, options ...patch.HelperOption) (*widget.Widget, *patch.Helper) {
	t.Helper()
	w := read(t, s.Direct)
	h := check.Must(patch.NewHelper(w, s, options...))(t)
	return w, h
}

func wantRequests(t *testing.T, s *widget.Server, want ...string) {
	t.Helper()
	check.EqualNamed(t, "requests", want, s.Requests(), cmpopts.EquateEmpty())
}

func TestPatchSendsOnlyWhatChanged(t *testing.T) {
	for _, tc := range []struct {
		name     string
		options  []patch.HelperOption
		change   func(*widget.Widget)
		requests []string
	}{
		{"nothing changed", nil, func(*widget.Widget) {}, nil},
		{"status", nil, func(w *widget.Widget) { w.Status.Phase = "New" }, []string{"patch status"}},
		{"metadata", nil, func(w *widget.Widget) { w.Labels = map[string]string{"a": "b"} }, []string{"patch"}},
		{"spec", nil, func(w *widget.Widget) { w.Spec.Size = 4 }, []string{"patch"}},
		{"both, metadata first", nil, func(w *widget.Widget) {
			w.Status.Phase = "New"
			w.Finalizers = []string{"a.b/c"}
		}, []string{"patch", "patch status"}},
		{"spec stays in memory if the option says so", []patch.HelperOption{patch.WithoutSpec()}, func(w *widget.Widget) { w.Spec.Size = 4 }, nil},
		{"values that are not serialised are no change", nil, func(w *widget.Widget) { w.Spec.Loaded = "secret" }, nil},
		{"what the server keeps is no change", nil, func(w *widget.Widget) { w.ManagedFields, w.GenerateName = nil, "x" }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := widget.NewServer(stored())
			w, h := start(t, s, tc.options...)
			tc.change(w)
			spec := w.Spec
			check.NoError(t, h.Patch(t.Context(), w))
			wantRequests(t, s, tc.requests...)
			check.SameNamed(t, "writes counted", len(tc.requests), h.Writes())
			check.SameNamed(t, "the spec in memory became", spec, w.Spec)
			server := read(t, s.Direct)
			if w.ResourceVersion != server.ResourceVersion {
				t.Errorf("resourceVersion %s, the server has %s", w.ResourceVersion, server.ResourceVersion)
			}
			check.Equal(t, server.Status, w.Status)
			// At rest: the same once more is nothing.
			check.NoError(t, h.Patch(t.Context(), w))
			wantRequests(t, s)
		})
	}
}

func TestAdaptersAreUnwrapped(t *testing.T) {
	s := widget.NewServer(stored())
	w := read(t, s.Direct)
	adapted := conditions.For(w, &w.Status.Conditions)
	h := check.Must(patch.NewHelper(adapted, s))(t)
	conditions.MarkTrue(adapted, "Ready", "Ready", "")
	check.NoError(t, h.Patch(t.Context(), adapted))
	if !conditions.IsReady(read(t, s.Direct)) {
		t.Error("the condition is not on the server")
	}
	if h.OriginalCondition("Ready") != nil {
		t.Error("the condition was not there at first")
	}
}

func TestOneWriteRemovesTheLastFinalizer(t *testing.T) {
	w := stored()
	w.Finalizers = []string{"a.b/c"}
	s := widget.NewServer(w)
	check.NoError(t, s.Direct.Delete(t.Context(), w))
	obj, h := start(t, s)
	obj.Finalizers = nil
	obj.Status.Phase = "Gone"
	check.NoError(t, h.Patch(t.Context(), obj))
	wantRequests(t, s, "patch")
	if err := s.Direct.Get(t.Context(), key, &widget.Widget{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the object is still there: %v", err)
	}
}

func TestNewHelperRefusesWhatItCannotPatch(t *testing.T) {
	s := widget.NewServer()
	for name, obj := range map[string]client.Object{
		"resourceVersion": stored(),
		"find the kind":   &unstructured.Unstructured{Object: map[string]any{}},
		"needs an object": nil,
	} {
		if _, err := patch.NewHelper(obj, s); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want an error that says %q, got %v", name, err)
		}
	}
}
