// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/trace"
	"github.com/corbel-run/corbel/pkg/result"
)

func newTelemetry() *Telemetry {
	return New(Options{Controller: "widgets", Tracer: trace.New(nil), Now: time.Now})
}

func TestSummary(t *testing.T) {
	tests := []struct {
		name  string
		steps map[string]int
		want  string
	}{
		{"nothing was done", nil, ""},
		{"zeros are nothing", map[string]int{"create": 0}, ""},
		{"an install", map[string]int{"create": 57}, "created 57 objects"},
		{"an upgrade, always in the same order", map[string]int{"delete": 1, "replace": 2, "merge": 3, "override": 4, "orphan": 5, "create": 1},
			"created 1 object, replaced 2 objects, merged 3 objects, overrode 4 objects, deleted 1 object, released 5 objects"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := summaryOf(test.steps); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestTheControllerDoesNotRepeatWhatTheLogHas(t *testing.T) {
	var lines []string
	sink := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}).GetSink()
	telemetry := newTelemetry()
	controller := logr.New(&onceSink{sink}).WithName("c").WithValues("name", "main")
	run := func(logged string, err error) {
		_, returned := telemetry.Reconcile(t.Context(), client.ObjectKey{Name: "main"}, func(ctx context.Context) (ctrl.Result, error) {
			if current, ok := ctx.Value(outcomeKey{}).(*outcome); ok {
				current.logged = logged
			}
			return ctrl.Result{}, err
		})
		if !errors.Is(returned, err) {
			t.Errorf("%v became %v", err, returned)
		}
		controller.Error(returned, "Reconciler error")
	}
	reported := result.NewGeneric(errors.New("reported"), "Error")
	run("reported", reported)
	if len(lines) > 0 {
		t.Errorf("it was logged again: %q", lines)
	}
	run("reported", errors.Join(reported, errors.New("write the outcome: no")))
	run("", errors.New("read Widget shop/main: no"))
	if len(lines) != 2 || !strings.Contains(lines[0], "write the outcome") || !strings.Contains(lines[1], "read Widget") {
		t.Errorf("lines: %q", lines)
	}
}
