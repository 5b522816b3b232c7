// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

// watched is a bench with an engine that watches, with the changes and the requests of the engine.
type watched struct {
	*bench
	*between
	lock    sync.Mutex
	changes []reconciler.Change
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{bench: newBench(t)}
	w.restart(t)
	return w
}

// restart gives the bench a new engine, which knows nothing.
func (w *watched) restart(t *testing.T) {
	t.Helper()
	if w.between != nil {
		w.engine.Close()
	}
	w.between = w.interpose(t, reconciler.ReconcilerOptions{Changed: func(owner reconciler.Owner, change reconciler.Change) {
		w.lock.Lock()
		defer w.lock.Unlock()
		if owner.Name == w.owner().Name && owner.Namespace == w.namespace {
			w.changes = append(w.changes, change)
		}
	}})
	t.Cleanup(w.engine.Close)
}

// awaitChange waits until the engine reports a change of the object.
func (w *watched) awaitChange(name string, what reconciler.Event) {
	w.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		w.lock.Lock()
		found := slices.ContainsFunc(w.changes, func(c reconciler.Change) bool { return c.Key.Name == name && c.What == what })
		changes := slices.Clone(w.changes)
		if found {
			w.changes = nil
		}
		w.lock.Unlock()
		if found {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("no notification of %s of %s; notified of %v", what, name, changes)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// sent returns how many requests were sent since the last call, by method, without
// watches and what finds out about types. A watch starts with a GET of its type.
func (w *watched) sent() map[string]int {
	counts := map[string]int{}
	for _, request := range w.requests("") {
		method, path, _ := strings.Cut(request, " ")
		if strings.HasSuffix(path, "/namespaces/kube-system") || slices.Contains(notCounted, path) {
			continue
		}
		counts[method]++
	}
	return counts
}

var notCounted = []string{"/apis", "/api/v1", "/api/v1/configmaps", "/apis/apps/v1", "/apis/apps/v1/deployments"}

// expect checks how many requests were sent.
func (w *watched) expect(what string, want map[string]int) {
	w.t.Helper()
	if got := w.sent(); fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Errorf("%s: sent %v, want %v", what, got, want)
	}
}

func TestAnUrgentCallDoesNotWaitForTheListsOfItsTypes(t *testing.T) {
	for name, test := range map[string]struct {
		objects  int
		urgent   bool
		deadline time.Duration // less than a call waits otherwise
		want     map[string]int
	}{
		"urgent":     {16, true, 5 * time.Second, map[string]int{"GET": 16, "PUT": 1}},
		"not urgent": {16, false, time.Second, map[string]int{}},
		"too many":   {17, true, time.Second, map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatched(t)
			w.mustApply(configs(test.objects, "1")...)
			w.restart(t)
			ended := make(chan struct{})
			w.before("GET /api/v1/configmaps", func() { <-ended })
			defer close(ended)
			ctx, cancel := context.WithTimeout(t.Context(), test.deadline)
			defer cancel()
			outcome, err := w.engine.Apply(ctx, reconciler.ApplyRequest{
				Owner: w.owner(), Namespace: w.namespace, Inventory: w.inventory, Record: w.record, Urgent: test.urgent,
				Objects: append(configs(test.objects, "1")[1:], config("c00", "2")),
			})
			if done := err == nil && outcome.Done(); done != (len(test.want) > 0) {
				t.Errorf("apply: %v, waiting for %v", err, outcome.Waiting)
			}
			w.expect("an edit after a restart", test.want)
		})
	}
}

func configs(n int, value string) []client.Object {
	var objects []client.Object
	for i := range n {
		objects = append(objects, config(fmt.Sprintf("c%02d", i), value))
	}
	return objects
}

func TestNothingIsSentButWhatHasToBe(t *testing.T) {
	const n = 30
	w := newWatched(t)
	w.mustApply(configs(n, "1")...)
	w.expect("install", map[string]int{"POST": n, "GET": 1}) // the namespace
	w.mustApply(configs(n, "1")...)
	w.expect("nothing changed", map[string]int{})
	changed := append([]client.Object{config("c00", "2")}, configs(n, "1")[1:]...)
	w.mustApply(changed...)
	w.expect("one changed", map[string]int{"PUT": 1})
	w.mustApply(configs(n, "3")...)
	w.expect("all changed", map[string]int{"PUT": n})
	w.restart(t)
	w.mustApply(configs(n, "3")...)
	w.expect("restart", map[string]int{})

	edited := w.get("c01")
	edited.Data["value"] = "theirs"
	if err := w.Update(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	w.awaitChange("c01", reconciler.EventContent)
	w.mustApply(configs(n, "3")...)
	w.expect("drift", map[string]int{"GET": 1, "PUT": 1})
	if w.get("c01").Data["value"] != "3" {
		t.Error("the drift is still there")
	}

	w.deleteByHand("c02")
	w.awaitChange("c02", reconciler.EventVanished)
	w.mustApply(configs(n, "3")...)
	w.expect("one deleted by hand", map[string]int{"GET": 2, "POST": 1}) // the object and its namespace

	w.mustApply(configs(n-5, "3")...)
	w.expect("five dropped", map[string]int{"DELETE": 5, "GET": 1}) // a last look, in a list
	w.mustDeleteAll()
	w.expect("delete", map[string]int{"DELETE": n - 5, "GET": 1})
	if len(w.changes) > 0 {
		t.Errorf("a change of our own was notified: %v", w.changes)
	}
}

func (w *watched) mustDeleteAll() {
	w.t.Helper()
	if outcome, err := w.delete(); err != nil || !outcome.Done() {
		w.t.Fatalf("delete: %v, waiting for %v", err, outcome.Waiting)
	}
}

// deleteByHand deletes an object as another client.
func (w *watched) deleteByHand(name string) {
	w.t.Helper()
	object := &corev1.ConfigMap{}
	object.Namespace, object.Name = w.namespace, name
	if err := w.Client.Delete(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

func TestAnObjectWithAChangedFieldOfOthersIsReadOnce(t *testing.T) {
	w := newWatched(t)
	w.mustApply(configs(3, "1")...)
	w.sent()
	object := w.get("c01")
	object.Data["other"] = "theirs"
	if err := w.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	w.awaitChange("c01", reconciler.EventContent)
	w.mustApply(configs(3, "1")...)
	w.expect("the first time", map[string]int{"GET": 1})
	w.mustApply(configs(3, "1")...)
	w.expect("afterwards", map[string]int{})
	w.restart(t)
	w.mustApply(configs(3, "1")...)
	w.expect("after a restart", map[string]int{})
	if w.get("c01").Data["other"] != "theirs" {
		t.Error("the field of others was removed")
	}
}
