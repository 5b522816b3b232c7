// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/patch"
)

// oneWidget is a server that holds one component.
type oneWidget struct {
	client.Client
	widget *widget
	err    error
}

func (s oneWidget) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if s.err == nil {
		*obj.(*widget) = *s.widget
	}
	return s.err
}

func TestNothingIsCreatedForAComponentThatIsNotAsTheReconcileReadIt(t *testing.T) {
	broken := errors.New("broken")
	unserved := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{Resource: "widgets"}, "main", "404 page not found", 0, true)
	tests := []struct {
		name   string
		change func(*widget)
		err    error
		want   error
	}{
		{"unchanged", func(*widget) {}, nil, nil},
		{"labels changed", func(w *widget) { w.Labels = map[string]string{"a": "b"}; w.ResourceVersion = "9" }, nil, nil},
		{"labels of another operator", func(w *widget) { w.Labels = map[string]string{"shard": "b"} }, nil, patch.ErrConflict},
		{"another client's annotation", func(w *widget) { w.Annotations = map[string]string{"example.org/management-policy": "skip"} }, nil, nil},
		{"to be skipped", func(w *widget) { w.Annotations = map[string]string{"test.corbel.run/management-policy": "skip"} }, nil, patch.ErrConflict},
		{"to be detached", func(w *widget) {
			w.Annotations = map[string]string{"test.corbel.run/management-policy": "detach-on-delete"}
		}, nil, patch.ErrConflict},
		{"a condition changed", func(w *widget) { w.Status.State = v1alpha1.StateError }, nil, nil},
		{"gone", func(*widget) {}, apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, "main"), patch.ErrConflict},
		{"made anew", func(w *widget) { w.UID = "other" }, nil, patch.ErrConflict},
		{"another spec", func(w *widget) { w.Generation++ }, nil, patch.ErrConflict},
		{"being deleted", func(w *widget) { w.DeletionTimestamp = new(metav1.Now()) }, nil, patch.ErrConflict},
		{"another inventory", func(w *widget) { w.Status.Inventory, w.ResourceVersion = v1alpha1.Inventory{}, "9" }, nil, patch.ErrConflict},
		{"an inventory that is not written yet", func(w *widget) { w.Status.Inventory = v1alpha1.Inventory{} }, nil, nil},
		{"its path is not served for a moment", func(*widget) {}, unserved, unserved},
		{"unreadable", func(*widget) {}, broken, broken},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h, _ := testHandler(t, &fakeEngine{})
			obj := newWidget()
			obj.GetStatus().Inventory = someInventory
			current := obj.DeepCopyObject().(*widget)
			test.change(current)
			h.local = oneWidget{widget: current, err: test.err}
			var err error
			if h.settings.selector, err = labels.Parse("shard notin (b)"); err != nil {
				t.Fatal(err)
			}
			if err := h.confirm(obj)(t.Context()); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			h.settings.leaderLock = &LeaderLock{Interface: &leaseStub{}}
			if err := h.confirm(obj)(t.Context()); !errors.Is(err, patch.ErrConflict) {
				t.Errorf("without a lease: %v", err)
			}
		})
	}
}
