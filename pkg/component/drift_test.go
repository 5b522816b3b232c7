// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

func deviation(name, manager string, at time.Time, fields ...string) report.Deviation {
	d := report.Deviation{Drift: report.Drift{Manager: manager, At: at, Fields: fields}}
	d.Key.Kind, d.Key.Namespace, d.Key.Name = "ConfigMap", "shop", name
	return d
}

func TestReportedDriftIsAConditionAndOneEventAndDoesNotChangeReady(t *testing.T) {
	noon := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	engine := &fakeEngine{outcome: reconciler.Outcome{Settled: 1, Total: 1, ManifestDigest: "m1"}}
	h, log := testHandler(t, engine)
	obj := newWidget()
	expect := func(what, message string, events ...string) {
		t.Helper()
		reconcileOnce(t, h, obj)
		if state, _, said := obj.GetStatus().GetState(); state != v1alpha1.StateReady {
			t.Errorf("%s: the state is %s: %s", what, state, said)
		}
		var said string
		if drifted := apimeta.FindStatusCondition(obj.GetStatus().Conditions, v1alpha1.ConditionDrifted); drifted != nil {
			said = drifted.Message
		}
		if diff := cmp.Diff(message, said); diff != "" {
			t.Errorf("%s: condition (-want +got):\n%s", what, diff)
		}
		if diff := cmp.Diff(events, log.lines); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", what, diff)
		}
		log.lines = nil
	}
	expect("nothing", "")

	const first = "ConfigMap shop/a: kubectl-edit changed data.x at 2026-01-01T12:00:00Z"
	engine.outcome.Drifted = []report.Deviation{deviation("a", "kubectl-edit", noon, "data.x")}
	expect("drift", first, "Normal|Drifted|Apply|ConfigMap shop/a: drifted: kubectl-edit changed data.x at 2026-01-01T12:00:00Z")
	engine.outcome.Drifted = []report.Deviation{deviation("a", "kubectl-edit", noon.Add(time.Second), "data.x")}
	expect("the same once more", first)

	engine.err, engine.outcome.Total, engine.outcome.Drifted = errors.New("the server is busy"), 0, nil
	reconcileOnce(t, h, obj)
	if !apimeta.IsStatusConditionTrue(obj.GetStatus().Conditions, v1alpha1.ConditionDrifted) {
		t.Error("a reconcile that saw nothing took the condition away")
	}
	log.lines = nil
	engine.err, engine.outcome.Total = nil, 1

	gone := report.Deviation{Key: deviation("b", "", noon).Key, Drift: report.Drift{Missing: true}}
	engine.outcome.Drifted = []report.Deviation{deviation("a", "", time.Time{}, "data.x", "data.y"), gone}
	const both = "ConfigMap shop/a: another client changed data.x, data.y; ConfigMap shop/b: another client deleted it"
	expect("another one", both, "Normal|Drifted|Apply|ConfigMap shop/a: drifted: another client changed data.x, data.y; ConfigMap shop/b: drifted: another client deleted it")
	engine.outcome.Drifted = nil
	expect("it is over", "")
}

func TestRepairsAndContestsAreEvents(t *testing.T) {
	about := func(reason string, warning bool, message string) report.Note {
		return report.Note{Key: deviation("a", "", time.Time{}).Key, Reason: reason, Warning: warning, Message: message}
	}
	h, log := testHandler(t, &fakeEngine{outcome: reconciler.Outcome{Settled: 1, Total: 1, Notes: []report.Note{
		about(report.NoteDriftRepaired, false, "drift repaired: kubectl-edit changed data.x"),
		about("FieldConflict", true, "their-operator changes data.x again and again"),
	}}})
	reconcileOnce(t, h, newWidget())
	want := []string{
		"Warning|FieldConflict|Apply|ConfigMap shop/a: their-operator changes data.x again and again",
		"Normal|DriftRepaired|Apply|ConfigMap shop/a: drift repaired: kubectl-edit changed data.x",
	}
	if diff := cmp.Diff(want, log.lines); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
