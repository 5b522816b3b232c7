// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// withHook renders config maps, and lets the one named "first" run before the deletion.
func withHook(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
	objects, err := configMaps(ctx, namespace, name, parameters)
	for _, object := range objects {
		if object.GetName() == "first" {
			object.SetAnnotations(map[string]string{operatorName + "/run-on": "pre-delete"})
		}
	}
	return objects, err
}

func TestObjectsThatRunBeforeTheDeletionAreRenderedForIt(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(withHook), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1", "first": "1"}})
	b.until(v1alpha1.StateReady)
	if _, exists := b.configMap("first"); exists || !b.get().Status.Inventory.DeleteHooks {
		t.Fatal("it was installed, or is not noted")
	}
	b.check(b.client.Delete(t.Context(), b.get()))
	b.untilGone()
	for _, name := range []string{"a", "first"} {
		if _, exists := b.configMap(name); exists {
			t.Errorf("config map %s was still there", name)
		}
	}
}
