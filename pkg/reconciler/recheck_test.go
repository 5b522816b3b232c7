// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

func TestAComponentDoesNotListTheObjectsOfAWholeFleetAtItsEnd(t *testing.T) {
	b := newBench(t)
	between := b.interpose(t, reconciler.ReconcilerOptions{})
	b.mustApply(config("a", "1"), config("b", "1"), config("c", "1"))
	for i := range 100 {
		other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: fmt.Sprint("other-", i)}}
		if err := b.Create(t.Context(), other); err != nil {
			t.Fatal(err)
		}
	}
	between.requests("")
	if outcome, err := b.delete(); err != nil || !outcome.Done() {
		t.Fatalf("delete: %v, waiting for %v", err, outcome.Waiting)
	}
	path := "/api/v1/namespaces/" + b.namespace + "/configmaps"
	// Each is read once at the start and once at the end, and one page shows that there are many.
	if gets := between.requests("GET " + path); len(gets) != 7 {
		t.Errorf("%d reads: %v", len(gets), gets)
	}
}
