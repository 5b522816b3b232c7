// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/corbel-run/corbel/internal/inventory"
)

// What is answered decides about the removal of an inventory.
func TestAComponentIsGoneOnlyIfTheServerNamesIt(t *testing.T) {
	resource := schema.GroupResource{Group: widgetKind.Group, Resource: "widgets"}
	for name, tc := range map[string]struct {
		answer error
		want   inventory.State
	}{
		"it does not exist":                   {apierrors.NewNotFound(resource, "main"), inventory.StateGone},
		"its path is not served for a moment": {apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, "main", "404 page not found", 0, true), ""},
		"another one does not exist":          {apierrors.NewNotFound(resource, "other"), ""},
		"the server is down":                  {apierrors.NewServiceUnavailable("later"), ""},
	} {
		h, _ := testHandler(t, &fakeEngine{})
		h.local = interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return tc.answer
			},
		})
		state, err := h.componentState(t.Context(), inventory.Component{Kind: widgetKind.Kind, Namespace: "shop", Name: "main", UID: "1"})
		if state != tc.want || (err == nil) != (tc.want == inventory.StateGone) {
			t.Errorf("%s: got %q, %v", name, state, err)
		}
	}
}

// A type that was taken from the server is not asked for every few seconds for ever.
func TestTheFateOfAComponentIsReadLessAndLessOften(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	var waits []time.Duration
	key := client.ObjectKey{Namespace: "shop", Name: "main"}
	fails := func(err error) {
		h.retryCleanup(t.Context(), key, err)
		waits = append(waits, h.triggers.(*fakeTriggers).asked[key])
	}
	for range 9 {
		fails(errors.New("its path is not served"))
	}
	h.cleanUpInventory(t.Context(), key) // nothing is left of it
	fails(errors.New("another one of its name"))
	want := []time.Duration{5, 10, 20, 40, 80, 160, 320, 600, 600, 5}
	for i := range want {
		want[i] *= time.Second
	}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}
