// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/types"
)

func TestADeletionRendersOnlyIfSomethingRunsBeforeOrAfterIt(t *testing.T) {
	const skip = "test.corbel.run/skip-delete-hooks"
	withHooks := someInventory
	withHooks.DeleteHooks = true
	broken := errors.New("value image is required")
	tests := []struct {
		name       string
		inventory  v1alpha1.Inventory
		annotation string
		err        error // of the generator
		rendered   int
		skipped    bool
		state      v1alpha1.State
		says       string
	}{
		{name: "nothing does", inventory: someInventory, err: broken},
		{name: "something does", inventory: withHooks, rendered: 1},
		{name: "it cannot be rendered", inventory: withHooks, err: broken, rendered: 1,
			state: v1alpha1.StateDeletionPending, says: `render what runs before and after the deletion: generator: value image is required; to delete without that, set the annotation ` + skip + `: "true"`},
		{name: "it is skipped", inventory: withHooks, annotation: "true", err: broken, skipped: true},
		{name: "it is not skipped", inventory: withHooks, annotation: "false", rendered: 1},
		{name: "unknown value", inventory: withHooks, annotation: "perhaps", state: v1alpha1.StateDeleting, says: `annotation ` + skip + `: "perhaps" must be "true" or "false"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			engine := &fakeEngine{}
			h, _ := testHandler(t, engine)
			rendered := 0
			h.revisions.Renderer.Generator = generatorFunc(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
				rendered++
				return nil, test.err
			})
			obj := deletedWidget(test.inventory)
			obj.Annotations = map[string]string{skip: test.annotation}
			reconcileOnce(t, h, obj)
			if rendered != test.rendered {
				t.Errorf("rendered %d times, want %d", rendered, test.rendered)
			}
			state, _, message := obj.GetStatus().GetState()
			if test.says != "" {
				if state != test.state || !strings.Contains(message, test.says) || len(engine.deleted) > 0 {
					t.Errorf("%s: %s; %d deletions", state, message, len(engine.deleted))
				}
				return
			}
			if len(engine.deleted) != 1 {
				t.Fatalf("%d deletions; %s: %s", len(engine.deleted), state, message)
			}
			if request := engine.deleted[0]; request.SkipHooks != test.skipped || (request.Namespace != "") != (test.rendered > 0) {
				t.Errorf("asked for %+v", request)
			}
		})
	}
}
