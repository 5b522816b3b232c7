// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

func TestAFullReconcileRendersOnce(t *testing.T) {
	calls := 0
	b := newBed(t, manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, p types.Unstructurable) ([]client.Object, error) {
		calls++
		return configMaps(ctx, namespace, name, p)
	}), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1", "b": "2"}})
	// Whatever a full reconcile finds out, it renders for itself: what a generator looks up
	// may have changed since the last reconcile.
	reconciles := func(what string, n, want int) {
		t.Helper()
		calls = 0
		b.pause(n, time.Minute)
		if calls != want {
			t.Errorf("%s: %d renderings in %d reconciles, want %d", what, calls, n, want)
		}
	}
	b.reconcile() // which claims the component
	b.until(component.StateReady)
	reconciles("at rest", 5, 5)
	b.update(func(w *widget.Widget) { w.Spec.Values["a"] = "3" })
	reconciles("the change", 1, 1)
	reconciles("afterwards", 5, 5)
	configMap := configMap("a", nil)
	configMap.Namespace = b.namespace
	b.check(b.client.Delete(b.Context(), configMap))
	b.eventually("the dependent to be made again", func() error {
		calls = 0
		b.pause(1, time.Minute)
		if _, exists := b.configMap("a"); !exists {
			return errors.New("it is gone")
		}
		return nil
	})
	if calls != 0 {
		t.Errorf("%d renderings to make a dependent again", calls)
	}
}
