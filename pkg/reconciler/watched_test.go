// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

// watched is a bench with an engine that watches, with the requests of the engine.
type watched struct {
	*bench
	*between
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
	w.between = w.interpose(t, reconciler.ReconcilerOptions{Changed: func(reconciler.Owner, reconciler.Change) {}})
	t.Cleanup(w.engine.Close)
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
