// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

func TestAReconcileIsOnTheFastPathIfNothingButDependentsChanged(t *testing.T) {
	key := client.ObjectKey{Namespace: "shop", Name: "main"}
	owner := reconciler.Owner{Namespace: "shop", Name: "main"}
	status, content := reconciler.Change{What: reconciler.EventStatus}, reconciler.Change{What: reconciler.EventContent}
	for name, tc := range map[string]struct {
		before func(*Queue)
		fast   bool
		after  map[client.ObjectKey]time.Duration
	}{
		"nothing happened":             {before: func(*Queue) {}, after: map[client.ObjectKey]time.Duration{}},
		"a status changed":             {before: func(q *Queue) { q.DependentChanged(owner, status) }, fast: true, after: map[client.ObjectKey]time.Duration{key: debounce}},
		"content changed":              {before: func(q *Queue) { q.DependentChanged(owner, content) }, fast: true, after: map[client.ObjectKey]time.Duration{key: 0}},
		"both changed":                 {before: func(q *Queue) { q.DependentChanged(owner, content); q.DependentChanged(owner, status) }, fast: true, after: map[client.ObjectKey]time.Duration{key: 0}},
		"a trigger":                    {before: func(q *Queue) { q.RequestFull(key) }, after: map[client.ObjectKey]time.Duration{key: 0}},
		"a trigger, then a change":     {before: func(q *Queue) { q.RequestFull(key); q.DependentChanged(owner, status) }, after: map[client.ObjectKey]time.Duration{key: 0}},
		"a change, then a trigger":     {before: func(q *Queue) { q.DependentChanged(owner, status); q.RequestFull(key) }, after: map[client.ObjectKey]time.Duration{key: 0}},
		"a change before the last one": {before: func(q *Queue) { q.DependentChanged(owner, status); q.Drain(); q.StartReconcile(key) }, after: map[client.ObjectKey]time.Duration{}},
	} {
		q := New()
		tc.before(q)
		if diff := cmp.Diff(tc.after, q.Drain()); diff != "" {
			t.Errorf("%s: what goes to the queue (-want +got):\n%s", name, diff)
		}
		if fast := q.StartReconcile(key); fast != tc.fast {
			t.Errorf("%s: fast path %v", name, fast)
		}
		if q.StartReconcile(key) {
			t.Errorf("%s: the next reconcile is on the fast path without a cause", name)
		}
	}
}

func TestADelayedReconcileIsOnTheFastPathOnlyWhenItIsDue(t *testing.T) {
	key := client.ObjectKey{Namespace: "shop", Name: "main"}
	q := New()
	q.RequestFast(key, time.Hour)
	q.RequestFast(key, 200*time.Millisecond) // sooner counts
	q.RequestFast(key, time.Hour)
	if q.StartReconcile(key) || len(q.Drain()) > 0 {
		t.Error("a reconcile before it is due is on the fast path")
	}
	deadline := time.Now().Add(2 * time.Minute)
	for len(q.Drain()) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("it is not due")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !q.StartReconcile(key) || len(q.delayed) > 0 {
		t.Error("the reconcile that is due is not on the fast path, or something is left")
	}
}

func TestWithWatchesOfTheBuilderEveryReconcileIsFull(t *testing.T) {
	q := New()
	q.AlwaysFull = true
	q.RequestFast(client.ObjectKey{Name: "main"}, 0)
	if q.StartReconcile(client.ObjectKey{Name: "main"}) {
		t.Error("it is on the fast path")
	}
}

func TestARequeueIsNotLostHoweverManyComponentsWait(t *testing.T) {
	q := New()
	for i := range MaxWaiting {
		if !q.Trigger(client.ObjectKey{Name: fmt.Sprint(i)}) {
			t.Fatalf("the trigger %d is refused", i)
		}
	}
	requeued, changed := client.ObjectKey{Name: "requeued"}, client.ObjectKey{Name: "changed"}
	if q.Trigger(client.ObjectKey{Name: "one more"}) {
		t.Error("triggers are not limited")
	}
	q.RequestFull(requeued)
	q.DependentChanged(reconciler.Owner{Name: "changed"}, reconciler.Change{What: reconciler.EventContent})
	drained := q.Drain()
	for _, key := range []client.ObjectKey{requeued, changed} {
		if _, waits := drained[key]; !waits {
			t.Errorf("%s is lost", key.Name)
		}
	}
}

func TestAChangeWithADelayCausesNoReconcileAtOnce(t *testing.T) {
	q := New()
	key := client.ObjectKey{Name: "main"}
	q.DependentChanged(reconciler.Owner{Name: "main"}, reconciler.Change{What: reconciler.EventContent, After: time.Hour})
	if _, waits := q.delayed[key]; !waits || len(q.Drain()) > 0 {
		t.Errorf("delayed is %v", q.delayed)
	}
	q.DependentChanged(reconciler.Owner{Name: "main"}, reconciler.Change{What: reconciler.EventVanished})
	if after, waits := q.Drain()[key]; !waits || after > 0 {
		t.Error("a change meanwhile is delayed, too")
	}
}

func TestAChangeOfStatusKeepsItsDelay(t *testing.T) {
	for after, want := range map[time.Duration]bool{0: false, time.Minute: true} {
		q := New()
		q.DependentChanged(reconciler.Owner{Name: "main"}, reconciler.Change{What: reconciler.EventStatus, After: after})
		if _, delayed := q.delayed[client.ObjectKey{Name: "main"}]; delayed != want {
			t.Errorf("with the delay %s: delayed is %v", after, q.delayed)
		}
	}
}
