// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/test/wire"
)

func TestSecretsOfTheInventoryThatCannotBeRemovedAtOnceAreRemovedLater(t *testing.T) {
	b := newBed(t, rendering(), component.ReconcilerOptions{})
	var cut atomic.Bool
	var refused atomic.Int64
	manager := newManagerVia(t, b.env, b.user, func(next http.RoundTripper) http.RoundTripper {
		return wire.Through(next, func(r *http.Request) (*http.Response, error) {
			if cut.Load() && r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/secrets/") {
				refused.Add(1)
				return nil, errors.New("the line is cut")
			}
			return next.RoundTrip(r)
		})
	})
	b.reconciler = component.NewReconciler[*widget.Widget](operatorName, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	smallStatus(b)
	b.check(b.reconciler.SetupWithManager(manager))
	b.start(manager)
	b.create(widget.Spec{RequeueSpec: aDay, Values: many(0, 30)})
	b.comesTo(func() (string, bool) {
		w := b.get()
		return w.Status.Progress, w.Status.IsReady()
	})
	const foreign = "example.com/held" // until all are gone, nothing is deleted
	b.update(func(w *widget.Widget) { w.Finalizers = append(w.Finalizers, foreign) })
	b.check(b.client.Delete(t.Context(), b.get()))
	b.patchFinalizers(foreign)
	for _, secret := range b.secrets() { // as the end of the namespace does
		b.check(b.client.Delete(t.Context(), &secret))
	}
	cut.Store(true)
	b.patchFinalizers()
	b.comesTo(func() (string, bool) {
		return fmt.Sprintf("%d requests were refused", refused.Load()), refused.Load() > 0
	})
	if len(b.secrets()) == 0 {
		t.Fatal("there is nothing to be freed")
	}
	cut.Store(false)
	b.comesTo(func() (string, bool) {
		left := len(b.secrets())
		return fmt.Sprintf("%d Secrets are left", left), left == 0
	})
}

// patchFinalizers leaves the component these finalizers.
func (b *bed) patchFinalizers(finalizers ...string) {
	b.Helper()
	w := b.get()
	before := w.DeepCopy()
	w.Finalizers = finalizers
	b.check(b.client.Patch(b.Context(), w, client.MergeFrom(before)))
}
