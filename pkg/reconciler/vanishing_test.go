// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// The namespace was looked at before, and was fine.
func TestACreateThatMeetsATerminatingNamespaceWaitsForIt(t *testing.T) {
	b := newBench(t)
	between := b.interpose(t, reconciler.ReconcilerOptions{})
	happened := between.before("POST /api/v1/namespaces/"+b.namespace+"/configmaps", func() {
		if err := b.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}}); err != nil {
			t.Error(err)
		}
	})
	outcome, err := b.apply(config("a", "1"))
	if err != nil || !happened() {
		t.Fatalf("got %v, the namespace was deleted: %v", err, happened())
	}
	if len(outcome.Waiting) != 1 || outcome.Waiting[0].Reason != report.WaitNamespaceGone {
		t.Errorf("waiting for %v, want the namespace to be gone", outcome.Waiting)
	}
}
