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
