// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

// putBack creates an object again, as a creation does that comes late.
func (b *bench) putBack(like *corev1.ConfigMap, owned bool) {
	b.t.Helper()
	again := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: like.Namespace, Name: like.Name, Labels: maps.Clone(like.Labels), Annotations: maps.Clone(like.Annotations)},
		Data:       like.Data,
	}
	if !owned {
		again.Labels, again.Annotations = nil, nil
	}
	if err := b.Create(b.t.Context(), again); err != nil {
		b.t.Fatal(err)
	}
}

// afterDeletion calls the function before the first request of the kind that
// comes after the object was deleted.
func (b *between) afterDeletion(path, prefix string, call func()) {
	deleted, done := false, false
	b.lock.Lock()
	defer b.lock.Unlock()
	b.hook = func(request string) {
		switch {
		case strings.HasPrefix(request, "DELETE "+path):
			deleted = true
		case deleted && !done && strings.HasPrefix(request, prefix):
			done = true
			call()
		}
	}
}

func TestObjectsThatReappearAfterTheDeletionAreFoundByTheirOwnershipMetadata(t *testing.T) {
	b := newBench(t)
	between := b.interpose(t, reconciler.ReconcilerOptions{})
	var objects []client.Object
	for _, name := range []string{"a", "b", "c", "d"} {
		objects = append(objects, config(name, "1"))
	}
	b.mustApply(objects...)
	unlabelled, mine, theirs := b.get("a"), b.get("b"), b.get("c")
	unlabelled.Labels = nil
	between.requests("")
	path := "/api/v1/namespaces/" + b.namespace + "/configmaps"
	between.afterDeletion(path+"/d", "GET "+path, func() {
		b.putBack(unlabelled, true)
		b.putBack(mine, true)
		b.putBack(theirs, false)
	})
	outcome, err := b.delete()
	if err != nil || !outcome.Done() || len(b.inventory.Items) > 0 {
		t.Fatalf("delete: %v, waiting for %v", err, outcome.Waiting)
	}
	if b.get("a") != nil || b.get("b") != nil || b.get("c") == nil {
		t.Error("ours was not deleted, or an object of another owner was removed")
	}
	if len(outcome.Returned) != 2 {
		t.Errorf("returned %v", outcome.Returned)
	}
	// Each is read once at the start; then there is one list, and a and b are read again twice.
	if gets := between.requests("GET " + path); len(gets) > 9 {
		t.Errorf("%d reads: %v", len(gets), gets)
	}
}

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
