// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/test/check"
)

func TestAnObjectThatWasCreatedAnewIsDeletedFirst(t *testing.T) {
	for name, replace := range map[string]func(*memory){
		"seen": func(m *memory) {
			m.disappeared(configMap("1", "1", "a"))
			m.appeared(configMap("2", "2", "b"))
		},
		"seen as an update, after a break of the watch": func(m *memory) { m.replaced(configMap("1", "1", "a"), configMap("2", "2", "b")) },
		"with one between that was not reported": func(m *memory) {
			m.disappeared(configMap("1", "1", "a"))
			m.appeared(configMap("3", "3", "c"))
			m.disappeared(configMap("3", "3", "c"))
			m.appeared(configMap("2", "2", "b"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStand(t, false)
			s.memory.appeared(configMap("1", "1", "a"))
			s.reconcile()
			replace(s.memory)
			s.answer = func(ReconcileRequest) (ReconcileResult, error) { return ReconcileResult{}, errRefused }
			if actions, _, _ := s.reconcile(); len(actions) != 1 || actions[0] != ReconcileActionDeleted {
				t.Errorf("while the deletion fails: %v", actions)
			}
			s.answer = func(ReconcileRequest) (ReconcileResult, error) { return ReconcileResult{}, nil }
			before := len(s.calls)
			s.reconcile()
			var got []string
			for _, call := range s.calls[before:] {
				got = append(got, fmt.Sprint(call.Action, " ", call.Object.GetUID(), " ", valueOf(call.Object)))
			}
			check.EqualNamed(t, "calls", []string{"Deleted 1 a", "Created 2 b"}, got)
		})
	}
}

func TestAReconcilerMayDoWhatItLikesWithItsCopies(t *testing.T) {
	s := newStand(t, false)
	s.answer = func(req ReconcileRequest) (ReconcileResult, error) {
		for _, obj := range []client.Object{req.Object, req.Old} {
			if obj != nil {
				obj.(*corev1.ConfigMap).Data["value"] = "spoiled"
			}
		}
		return ReconcileResult{}, nil
	}
	first, second, third := configMap("1", "1", "a"), configMap("1", "2", "b"), configMap("1", "3", "c")
	s.memory.appeared(first)
	s.reconcile()
	s.memory.replaced(first, second)
	s.reconcile()
	s.memory.replaced(second, third)
	s.answer = func(ReconcileRequest) (ReconcileResult, error) { return ReconcileResult{}, nil }
	s.reconcile()
	if valueOf(first) != "a" || valueOf(s.last().Old) != "b" || valueOf(s.last().Object) != "c" {
		t.Errorf("%q, %q, %q", valueOf(first), valueOf(s.last().Old), valueOf(s.last().Object))
	}
}

func TestNothingIsCalledBeforeTheFinalizersAreOnTheServer(t *testing.T) {
	s := newStand(t, true)
	obj := s.stored(configMap("1", "", "a", "other.example.com/x"))
	s.memory.appeared(obj)
	resource := schema.GroupResource{Resource: "configmaps"}
	for name, tc := range map[string]struct {
		refuse error
		quiet  bool
	}{
		"a conflict": {apierrors.NewConflict(resource, "x", errRefused), true},
		"gone":       {apierrors.NewNotFound(resource, "x"), true},
		"not served": {&meta.NoKindMatchError{}, false},
		"forbidden":  {apierrors.NewForbidden(resource, "x", errRefused), false},
	} {
		s.refuse = tc.refuse
		actions, after, err := s.reconcile()
		if len(actions) != 0 || after <= 0 || after > 10*time.Second || (err == nil) != tc.quiet {
			t.Errorf("%s: %v, %s, %v", name, actions, after, err)
		}
	}
	s.refuse = nil
	s.answer = func(req ReconcileRequest) (ReconcileResult, error) {
		if want := []string{"other.example.com/x", testFinalizer, testFinalizer + pendingSuffix}; !slices.Equal(want, req.Object.GetFinalizers()) {
			t.Errorf("finalizers %v", req.Object.GetFinalizers())
		}
		return ReconcileResult{}, nil
	}
	if actions, after, err := s.reconcile(); len(actions) != 1 || after != 0 || err != nil {
		t.Errorf("%v, %s, %v", actions, after, err)
	}
	stored := &corev1.ConfigMap{}
	if err := s.finalizers.client.Get(t.Context(), testKey, stored); err != nil || !slices.Equal(stored.Finalizers, []string{"other.example.com/x", testFinalizer}) {
		t.Errorf("finalizers %v, %v", stored.Finalizers, err)
	}
	check.SameNamed(t, "after success the next conflict would wait for", writeRetryInitial, s.writeDelays.When(testKey))
	// The cache does not know yet.
	s.version = ""
	withFinalizers := configMap(string(stored.UID), "1", "b", "other.example.com/x", testFinalizer, testFinalizer+pendingSuffix)
	s.memory.appeared(withFinalizers)
	if actions, _, err := s.reconcile(); len(actions) != 1 || actions[0] != ReconcileActionUpdated || err != nil || s.version != "" {
		t.Errorf("with an old cache: %v, %v, write in version %q", actions, err, s.version)
	}
}

func TestTenThousandObjectsLeaveNothingInMemory(t *testing.T) {
	s := newStand(t, false)
	for i := range 10000 {
		obj := configMap(fmt.Sprint(i), "1", "a")
		obj.Name = fmt.Sprint("x", i)
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)}
		s.memory.appeared(obj)
		s.answer = func(ReconcileRequest) (ReconcileResult, error) { return ReconcileResult{}, nil }
		if i%3 == 0 {
			s.answer = func(ReconcileRequest) (ReconcileResult, error) { return ReconcileResult{}, errRefused }
		}
		if _, err := s.runner.Reconcile(t.Context(), request); err != nil {
			s.limiter.When(request) // as the queue does
		}
		s.answer = func(ReconcileRequest) (ReconcileResult, error) { return ReconcileResult{}, nil }
		s.memory.disappeared(obj)
		check.Must(s.runner.Reconcile(t.Context(), request))(t)
	}
	if len(s.memory.records) != 0 || len(s.limiter.delays) != 0 {
		t.Errorf("%d records, %d delays", len(s.memory.records), len(s.limiter.delays))
	}
}

func TestAPanicInTheOptionChangedMeansThatTheChangeCounts(t *testing.T) {
	m := newMemory(func(client.Object, client.Object) bool { panic("at the disco") }, ownFinalizers{})
	if !m.replaced(configMap("1", "1", "a"), configMap("1", "2", "a")) {
		t.Error("the change does not count")
	}
}

func TestWhichEventsAreWorthAReconcile(t *testing.T) {
	deleting := configMap("1", "2", "a", testFinalizer)
	deleting.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	labelled := configMap("1", "2", "a", testFinalizer)
	labelled.Labels = map[string]string{"a": "b"}
	before := configMap("1", "1", "a", testFinalizer)
	for name, tc := range map[string]struct {
		after              *corev1.ConfigMap
		plain, opinionated bool
	}{
		"content":                  {configMap("1", "2", "b", testFinalizer), true, true},
		"a label":                  {labelled, true, false},
		"deletion":                 {deleting, true, true},
		"our finalizer taken away": {configMap("1", "2", "a"), true, true},
		"a foreign finalizer":      {configMap("1", "2", "a", testFinalizer, "other.example.com/x"), true, false},
		"another object":           {configMap("2", "2", "a", testFinalizer), true, true},
		"a resync of the cache":    {configMap("1", "1", "a", testFinalizer), true, true},
	} {
		for _, opinionated := range []bool{false, true} {
			s := newStand(t, opinionated)
			s.memory.appeared(before)
			want := tc.plain
			if opinionated {
				want = tc.opinionated
			}
			if got := s.memory.replaced(before, tc.after); got != want {
				t.Errorf("%s, opinionated %t: %t", name, opinionated, got)
			}
		}
	}
}
