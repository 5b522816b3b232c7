// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
)

// eventLog is a recorder that keeps its events.
type eventLog struct{ lines []string }

func (l *eventLog) Eventf(_, _ runtime.Object, eventType, reason, action, note string, args ...any) {
	l.lines = append(l.lines, strings.Join([]string{eventType, reason, action, fmt.Sprintf(note, args...)}, "|"))
}

func noteAbout(name string) report.Note {
	var note report.Note
	note.Key.Kind, note.Key.Namespace, note.Key.Name = "ConfigMap", "shop", name
	note.Reason, note.Message = "Adopted", "adopted"
	return note
}

// reportReconcile lets the handler report a reconcile that ended with the error.
func reportReconcile(t *testing.T, h *handler, obj *widget, err error) {
	t.Helper()
	res := result.Empty
	if err == nil {
		res = result.Success
	}
	_ = h.report(t.Context(), obj, session.Outcome{Phase: session.PhaseApply, Result: res, Err: err})
}

func TestEventsComeWithTransitions(t *testing.T) {
	h, log := testHandler(t, &fakeEngine{})
	obj := newWidget()
	key := client.ObjectKeyFromObject(obj)
	expect := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, log.lines); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		log.lines = nil
	}
	outcome := func(creates int, notes ...string) {
		o := reconciler.Outcome{Steps: map[string]int{"create": creates}}
		for _, name := range notes {
			o.Notes = append(o.Notes, noteAbout(name))
		}
		h.conclude.Of(obj).Activity.Add(o)
	}
	waiting := &verdict.UnfinishedError{Facts: verdict.Facts{Waiting: "ConfigMap shop/a"}}

	reportReconcile(t, h, obj, waiting)
	expect()
	outcome(3, "a")
	reportReconcile(t, h, obj, waiting) // no transition
	outcome(2, "a", "b", "c", "d", "e")
	reportReconcile(t, h, obj, waiting)
	expect()
	reportReconcile(t, h, obj, nil)
	expect("Normal|Adopted|Apply|ConfigMap shop/a: adopted; ConfigMap shop/b: adopted; ConfigMap shop/c: adopted; and 2 more",
		"Normal|Applied|Apply|created 5 objects")
	reportReconcile(t, h, obj, nil)
	expect()
	outcome(1)
	reportReconcile(t, h, obj, nil) // repaired while Ready
	expect("Normal|Applied|Apply|created 1 object")

	harm := noteAbout("theirs")
	harm.Reason, harm.Warning, harm.Message = "ForeignInstancesLost", true, "lost"
	h.conclude.Of(obj).Activity.Add(reconciler.Outcome{Notes: []report.Note{noteAbout("a"), harm}})
	reportReconcile(t, h, obj, nil)
	expect("Warning|ForeignInstancesLost|Apply|ConfigMap shop/theirs: lost", "Normal|Adopted|Apply|ConfigMap shop/a: adopted")

	outcome(1)
	h.forgetComponent(t.Context(), key)
	reportReconcile(t, h, obj, nil)
	expect()
}

func TestThousandsOfNotesAreAFewEvents(t *testing.T) {
	h, log := testHandler(t, &fakeEngine{})
	obj := newWidget()
	var outcome reconciler.Outcome
	for i := range 3000 {
		note := noteAbout(fmt.Sprintf("object-%d", i))
		switch i % 3 {
		case 0:
			note.Reason, note.Message = "Released", "released: another client recreated it"
		case 1:
			note.Reason, note.Message = "OwnershipRestored", "ownership restored: another client had removed our label or annotation"
		default:
			note.Reason, note.Warning, note.Message = "OrphanFound", true, "found: "+strings.Repeat("ä", 2000)
		}
		outcome.Notes = append(outcome.Notes, note)
	}
	h.conclude.Of(obj).Activity.Add(outcome)
	reportReconcile(t, h, obj, nil)
	if len(log.lines) != 3 || !strings.HasPrefix(log.lines[0], "Warning|OrphanFound|") {
		t.Fatalf("events: %q", log.lines)
	}
	for _, line := range log.lines {
		note := line[strings.LastIndex(line, "|")+1:]
		if !strings.HasSuffix(note, "; and 997 more") || len(note) > 1024 || !utf8.ValidString(note) {
			t.Errorf("%d bytes: %s", len(note), line)
		}
	}
}

func TestAnOutdatedDefinitionIsReportedWhileDependentsAreUnderWay(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	obj := newWidget()
	pruned := errors.New("the API server does not keep status.inventory as sent")
	unfinished := &verdict.UnfinishedError{Facts: verdict.Facts{Err: pruned, Fallback: time.Minute}, Cause: pruned}
	reportReconcile(t, h, obj, result.NewStalling(unfinished, vocabulary.ReasonCRDOutdated))
	state, reason, message := obj.GetStatus().GetState()
	if state != v1alpha1.StateError || reason != vocabulary.ReasonCRDOutdated || message != pruned.Error() {
		t.Errorf("%s, %s: %s", state, reason, message)
	}
}

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
