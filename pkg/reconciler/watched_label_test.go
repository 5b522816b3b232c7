// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

// An object without our label has left the watch, and looks as if it were gone.
func TestADependentThatLosesOurMarksOnItsWayOutIsRemovedAllTheSame(t *testing.T) {
	strips := map[string]func(*corev1.ConfigMap){
		"its label":     func(c *corev1.ConfigMap) { delete(c.Labels, engineName+"/owner-id") },
		"all its marks": func(c *corev1.ConfigMap) { c.Labels, c.Annotations = nil, nil },
	}
	removals := map[string]func(w *watched) (reconciler.Outcome, error){
		"pruned":  func(w *watched) (reconciler.Outcome, error) { return w.apply(configs(1, "1")...) },
		"deleted": func(w *watched) (reconciler.Outcome, error) { return w.delete() },
	}
	left := map[string]int{"pruned": 1, "deleted": 0}
	for what, strip := range strips {
		for how, remove := range removals {
			gone := func(t *testing.T, w *watched, outcome reconciler.Outcome, err error) {
				t.Helper()
				if err != nil || !outcome.Done() || w.get("c01") != nil || len(w.inventory.Items) != left[how] {
					t.Errorf("%v, waiting for %v, there: %t, recorded %v", err, outcome.Waiting, w.get("c01") != nil, w.inventory.Items)
				}
			}
			t.Run(how+" right after it lost "+what, func(t *testing.T) {
				w := newWatched(t)
				w.mustApply(configs(2, "1")...)
				happened := w.before("DELETE /api/v1/namespaces/"+w.namespace+"/configmaps/c01", func() { w.change("c01", strip) })
				outcome, err := remove(w)
				if gone(t, w, outcome, err); !happened() {
					t.Error("it lost nothing")
				}
			})
			t.Run(how+" when it loses "+what+" while a finalizer holds it", func(t *testing.T) {
				w := newWatched(t)
				w.mustApply(configs(2, "1")...)
				w.change("c01", func(c *corev1.ConfigMap) { c.Finalizers = []string{"example.com/hold"} })
				w.told("c01", reconciler.EventContent)
				held := func() {
					t.Helper()
					if outcome, err := remove(w); err != nil || len(outcome.Waiting) != 1 || len(w.inventory.Items) != left[how]+1 {
						t.Fatalf("%v, waiting for %v, recorded %v", err, outcome.Waiting, w.inventory.Items)
					}
				}
				held()
				w.change("c01", strip)
				w.told("c01", reconciler.EventVanished)
				held()
				w.change("c01", func(c *corev1.ConfigMap) { c.Finalizers = nil })
				outcome, err := remove(w)
				gone(t, w, outcome, err)
			})
		}
	}
}
