// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAnObjectWithNewFinalizersOfAnotherProcessIsDeletedAgain(t *testing.T) {
	s := newStand(t, true)
	obj := s.stored(configMap("1", "", "a", testFinalizer))
	s.memory.appeared(obj.DeepCopy())
	s.reconcile()
	s.memory.disappeared(obj.DeepCopy()) // it left the selector, and came back
	s.memory.appeared(obj.DeepCopy())
	if actions, _, err := s.reconcile(); len(actions) != 1 || actions[0] != ReconcileActionDeleted || err != nil {
		t.Fatalf("%v, %v", actions, err)
	}
	get := func() *corev1.ConfigMap {
		t.Helper()
		if err := s.finalizers.client.Get(t.Context(), testKey, obj); err != nil {
			t.Fatal(err)
		}
		return obj.DeepCopy()
	}
	if finalizers := get().Finalizers; len(finalizers) != 0 {
		t.Fatalf("finalizers %v", finalizers)
	}
	obj.Finalizers = []string{testFinalizer} // by the other process
	if err := s.finalizers.client.Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	if err := s.finalizers.client.Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	s.memory.appeared(get())
	if actions, _, err := s.reconcile(); len(actions) != 1 || actions[0] != ReconcileActionDeleted || err != nil {
		t.Errorf("%v, %v", actions, err)
	}
	if err := s.finalizers.client.Get(t.Context(), testKey, obj); !apierrors.IsNotFound(err) {
		t.Errorf("%v, finalizers %v", err, obj.Finalizers)
	}
}

func TestAnObjectWithoutOurFinalizersIsNotWrittenAgain(t *testing.T) {
	s := newStand(t, true)
	obj := configMap("1", "1", "a", testFinalizer)
	obj.DeletionTimestamp = &metav1.Time{Time: s.clock}
	s.memory.appeared(obj) // the server does not have it any more
	for i, want := range []struct {
		calls   int
		version string
	}{{1, "v1"}, {0, ""}} {
		s.version = ""
		if actions, after, err := s.reconcile(); len(actions) != want.calls || after != 0 || err != nil || s.version != want.version {
			t.Errorf("reconcile %d: %v, %s, %v, write in version %q", i, actions, after, err, s.version)
		}
	}
}

func TestAnObjectThatOthersHoldAfterItsDeletionIsLeftInPeace(t *testing.T) {
	s := newStand(t, true)
	s.interval = time.Minute
	s.memory.appeared(s.stored(configMap("1", "", "a", "other.example.com/x", testFinalizer)))
	if actions, after, err := s.reconcile(); len(actions) != 1 || after != time.Minute || err != nil {
		t.Fatalf("%v, %s, %v", actions, after, err)
	}
	obj := configMap("1", "1", "a", "other.example.com/x", testFinalizer)
	obj.DeletionTimestamp = &metav1.Time{Time: s.clock}
	s.memory.appeared(obj)
	for _, want := range []int{1, 0, 0} {
		s.clock = s.clock.Add(2 * time.Minute)
		if actions, after, err := s.reconcile(); len(actions) != want || after != 0 || err != nil {
			t.Errorf("%v, %s, %v", actions, after, err)
		}
	}
}
