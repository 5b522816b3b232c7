// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

func TestTheStatusSaysWhatASlowRenderingWorksOn(t *testing.T) {
	for name, tc := range map[string]struct {
		state    v1alpha1.State
		observed int64
		counted  bool // the revision
		refused  error
		reported bool
	}{
		"a new component":          {v1alpha1.StatePending, 0, false, nil, true},
		"a new generation":         {v1alpha1.StateReady, 1, false, nil, true},
		"a new revision":           {v1alpha1.StateReady, 2, false, nil, true},
		"a generation that waits":  {v1alpha1.StateProcessing, 2, false, nil, true},
		"a revision that is ready": {v1alpha1.StateReady, 2, true, nil, false},
		"a generation that failed": {v1alpha1.StateError, 2, false, nil, false},
		"a refused write":          {v1alpha1.StatePending, 0, false, errors.New("conflict"), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, _ := testHandler(t, &fakeEngine{})
				generator := manifests.GeneratorFunc(func(ctx context.Context, _, _ string, _ types.Unstructurable) ([]client.Object, error) {
					renders.NoteProgress(ctx, "template web/a.yaml")
					time.Sleep(h.code.slowAfter + time.Second/2)
					return nil, ctx.Err()
				})
				h.revisions = newSource(h.steps, newRenderer(generator, h.steps))
				obj := newWidget()
				obj.Generation = 2
				obj.Status.State, obj.Status.ObservedGeneration = tc.state, tc.observed
				if tc.counted {
					digests, err := h.revisions.Digests(t.Context(), obj)
					if err != nil {
						t.Fatal(err)
					}
					revision.Of(obj).StartProcessing(obj.Generation, digests, h.now())
				}
				var said []string
				commit := func(context.Context) error {
					if _, _, message := obj.GetStatus().GetState(); strings.Contains(message, "rendered for") {
						said = append(said, message)
						return tc.refused
					}
					return nil
				}
				if _, err := h.applier.createOrUpdate(t.Context(), obj, commit); !errors.Is(err, tc.refused) {
					t.Errorf("got the error %v", err)
				}
				var want []string
				if tc.reported {
					want = []string{"the manifests have been rendered for 5s: template web/a.yaml"}
				}
				if diff := cmp.Diff(want, said); diff != "" {
					t.Errorf("what the status says (-want +got):\n%s", diff)
				}
			})
		})
	}
}
