// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

// clocked gives the bench an engine with a clock that the test sets.
func (b *bench) clocked(t *testing.T) (forward func(time.Duration), requests *between) {
	t.Helper()
	now := time.Now()
	requests = b.interpose(t, reconciler.ReconcilerOptions{Now: func() time.Time { return now }})
	return func(d time.Duration) { now = now.Add(d) }, requests
}

func TestAReapplyThatFindsNothingToChangeIsNoChangeOnTheServerAndIsReadyAllTheWay(t *testing.T) {
	for _, policy := range []string{"replace", "ssa-merge", "ssa-override", "recreate"} {
		t.Run("under "+policy, func(t *testing.T) {
			b := newBench(t)
			forward, _ := b.clocked(t)
			object := config("a", "1", "reapply-interval", "10m", "update-policy", policy)
			b.mustApply(object)
			before := b.get("a")
			forward(9 * time.Minute)
			if outcome := b.mustApply(object); len(outcome.Steps) > 0 {
				t.Errorf("steps %v before the interval has passed", outcome.Steps)
			}
			forward(2 * time.Minute)
			if outcome := b.mustApply(object); len(outcome.Steps) != 1 {
				t.Errorf("steps %v, want one write", outcome.Steps)
			}
			if after := b.get("a"); after.ResourceVersion != before.ResourceVersion || after.UID != before.UID {
				t.Errorf("version %s became %s", before.ResourceVersion, after.ResourceVersion)
			}
			if outcome := b.mustApply(object); len(outcome.Steps) > 0 {
				t.Errorf("steps %v right after the refresh", outcome.Steps)
			}
		})
	}
}

func TestAnUnchangedNamespaceClaimOrJobSurvivesAForcedRefresh(t *testing.T) {
	for _, policy := range []string{"replace", "ssa-merge", "ssa-override", "recreate"} {
		t.Run("under "+policy, func(t *testing.T) {
			b := newBench(t)
			forward, _ := b.clocked(t)
			claim := object("v1", "PersistentVolumeClaim", b.namespace+"/claim", map[string]any{"spec": map[string]any{
				"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
			}})
			work := object("batch/v1", "Job", b.namespace+"/work", map[string]any{"spec": map[string]any{"suspend": true, "template": podTemplate("work")}})
			namespace := object("v1", "Namespace", b.namespace+"-own", nil)
			var objects []client.Object
			for _, o := range []*unstructured.Unstructured{claim, work, namespace} {
				objects = append(objects, annotated(annotated(annotated(o, "reapply-interval", "1m"), "update-policy", policy), "ready-when", "true"))
			}
			uids := func() (uids []types.UID) {
				for _, o := range objects {
					live := o.DeepCopyObject().(client.Object)
					if err := b.Get(t.Context(), client.ObjectKeyFromObject(o), live); err != nil {
						t.Fatal(err)
					}
					uids = append(uids, live.GetUID())
				}
				return uids
			}
			b.mustApply(objects...)
			before := uids()
			forward(time.Hour)
			outcome := b.mustApply(objects...)
			if outcome.Steps["delete"] > 0 || outcome.Steps["create"] > 0 || len(outcome.Steps) == 0 {
				t.Errorf("steps %v, want writes in place", outcome.Steps)
			}
			if diff := cmp.Diff(before, uids()); diff != "" {
				t.Errorf("uids (-before +after):\n%s", diff)
			}
		})
	}
}
