// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// creates are steps that create ConfigMaps, one for each stage given.
func (b *bench) creates(namespace string, stages ...int) []plan.Step {
	var steps []plan.Step
	for _, stage := range stages {
		s := step(plan.VerbCreate, b.desired(configMap(namespace, unique("map")), v1alpha1.UpdatePolicyReplace), plan.Observation{})
		s.Stage = stage
		steps = append(steps, s)
	}
	return steps
}

func keys(results []plan.Result) string {
	var names []string
	for _, result := range results {
		names = append(names, result.Step.Key.Name)
	}
	return strings.Join(names, " ")
}

func TestAFailureHoldsBackLaterStagesOnly(t *testing.T) {
	b := newBench(t)
	steps := b.creates(b.namespace(), 0, 1, 1, 1, 2)
	steps[2].Desired.Manifest.Object["data"] = "no map"
	results := b.executor.Run(t.Context(), steps)
	if keys(results) != keys([]plan.Result{{Step: steps[0]}, {Step: steps[1]}, {Step: steps[2]}, {Step: steps[3]}}) {
		t.Fatalf("got %s", keys(results))
	}
	for i, result := range results {
		if failed := result.Err != nil; failed != (i == 2) {
			t.Errorf("step %d: got %v", i, result.Err)
		}
	}
	if text := results[2].Err.Error(); !strings.HasPrefix(text, "create "+steps[2].Key.String()+": ") {
		t.Errorf("got %q", text)
	}
}

func TestTheEndOfTheContextEndsTheRun(t *testing.T) {
	b := newBench(t)
	steps := b.creates(b.namespace(), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var sent atomic.Int64
	b.before = func(*http.Request) {
		if sent.Add(1) == 5 {
			cancel()
		}
	}
	results := b.executor.Run(ctx, steps)
	if len(results) >= len(steps)-1 {
		t.Errorf("all %d steps were started", len(results))
	}
	interrupted := 0
	for _, result := range results {
		if result.Err == nil {
			continue
		}
		interrupted++
		if !errors.Is(result.Err, context.Canceled) || result.Observation.Existence != plan.Unknown {
			t.Errorf("got %+v", result)
		}
	}
	if interrupted == 0 {
		t.Error("no step was interrupted")
	}
	cancel()
	if results := b.executor.Run(ctx, steps); len(results) != 0 {
		t.Errorf("after the end: got %s", keys(results))
	}
}

func TestAMistakeOfOursFailsOneStepOnly(t *testing.T) {
	b := newBench(t)
	steps := b.creates(b.namespace(), 0, 0, 0)
	steps[0].Desired.Manifest = nil
	steps[1].Desired.Manifest.Object["data"] = map[string]any{"a": func() {}} // nothing that JSON knows
	unknownVerb := steps[2]
	unknownVerb.Verb = "dance"
	for _, result := range b.executor.Run(t.Context(), append(steps, unknownVerb)) {
		wantErr := result.Step.Key != steps[2].Key || result.Step.Verb == "dance"
		if failed := result.Err != nil; failed != wantErr {
			t.Errorf("%s %s: got %v", result.Step.Verb, result.Step.Key, result.Err)
		}
	}
	b.before = func(*http.Request) { panic("a mistake") }
	result := b.run(steps[2])
	if result.Err == nil || !strings.Contains(result.Err.Error(), "internal error of the operator") {
		t.Errorf("got %v", result.Err)
	}
}

func TestAServerThatDoesNotAnswerIsNotAskedForEachStep(t *testing.T) {
	b := benchOn(t, &rest.Config{Host: "http://127.0.0.1:1"}) // nothing listens there
	var stages [200]int
	steps := b.creates("default", stages[:]...)
	results := b.executor.Run(t.Context(), steps)
	if len(results) == 0 || len(results) > 50 {
		t.Errorf("%d of %d steps were tried", len(results), len(steps))
	}
	for _, result := range results {
		if result.Err == nil || result.Observation.Existence != plan.Unknown {
			t.Errorf("got %+v", result)
		}
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

// fake returns the configuration of a server that knows ConfigMaps and gives
// every other request to the handler: for answers that a real one rarely gives.
func fake(t *testing.T, handler http.HandlerFunc) *rest.Config {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"APIResourceList","groupVersion":"v1","resources":[
			{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["create","delete","get","list","patch","update"]},
			{"name":"secrets","kind":"Secret","namespaced":true,"verbs":["create","delete","get","list","patch","update"]}]}`))
	})
	mux.HandleFunc("/", handler)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}
