// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/pkg/component/internal/telemetry"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// logLines collects the lines of a logger.
type logLines struct{ lines []string }

func (l *logLines) logger() logr.Logger {
	return funcr.New(func(_, line string) { l.lines = append(l.lines, line) }, funcr.Options{})
}

// logStory is the life of a component, and what the log says about it.
type logStory struct {
	*testing.T
	h      *handler
	engine *fakeEngine
	obj    *widget
	log    logLines
	now    time.Time
}

func newLogStory(t *testing.T) *logStory {
	s := &logStory{T: t, engine: &fakeEngine{}, obj: newWidget(), now: time.Unix(1000, 0)}
	s.h, _ = testHandler(t, s.engine)
	s.h.now = func() time.Time { return s.now }
	return s
}

func (s *logStory) ctx() context.Context { return logf.IntoContext(s.Context(), s.log.logger()) }

func (s *logStory) reconcile(outcome reconciler.Outcome, fails error) {
	s.Helper()
	s.engine.outcome, s.engine.err = outcome, fails
	res, err := s.h.applier.createOrUpdate(s.ctx(), s.obj, noCommit)
	_ = s.h.report(s.ctx(), s.obj, session.Outcome{Phase: session.PhaseApply, Result: res, Err: err})
}

func (s *logStory) suspend() {
	_ = s.h.report(s.ctx(), s.obj, session.Outcome{Phase: session.PhaseSkip})
}

func (s *logStory) expect(what string, want ...string) {
	s.Helper()
	if diff := cmp.Diff(want, s.log.lines); diff != "" {
		s.Errorf("%s (-want +got):\n%s", what, diff)
	}
	s.log.lines = nil
}

func done(steps map[string]int, notes ...report.Note) reconciler.Outcome {
	return reconciler.Outcome{Total: 3, Settled: 3, Steps: steps, Notes: notes}
}

func TestTheLogHasOneLineForEachTransition(t *testing.T) {
	s := newLogStory(t)
	about := func(name, reason, message string) report.Note {
		note := noteAbout(name)
		note.Reason, note.Message = reason, message
		return note
	}

	s.reconcile(reconciler.Outcome{Total: 3, Settled: 1, Steps: map[string]int{"create": 2}, Waiting: []report.Wait{waitFor("/ConfigMap shop/a", "NotReady", "not yet")}}, nil)
	s.expect("an installation under way")
	s.reconcile(done(map[string]int{"create": 1}, about("a", report.NoteAdopted, "adopted: it was there before"), about("b", report.NoteAdopted, "adopted: it was there before")), nil)
	s.expect("an installation",
		`"level"=0 "msg"="adopted" "component"="Widget shop/main" "revision"=1 "objects"=2 "first"="ConfigMap shop/a" "why"="it was there before"`,
		`"level"=0 "msg"="installed" "component"="Widget shop/main" "revision"=1 "dependents"="3/3" "created"=3`)
	s.reconcile(done(nil), nil)
	s.expect("rest")
	s.reconcile(done(map[string]int{"replace": 1}, about("a", report.NoteDriftRepaired, "drift repaired: data was changed")), nil)
	s.expect("a repair", `"level"=0 "msg"="repaired" "component"="Widget shop/main" "revision"=1 "dependents"="3/3" "replaced"=1`)
	s.obj.Generation++
	s.obj.Spec.Size++
	s.reconcile(done(map[string]int{"replace": 2, "delete": 1}, about("x", report.NoteReleased, "released: it belongs to Helm"), about("y", report.NoteRecreated, "recreated: the field is immutable")), nil)
	s.expect("an upgrade",
		`"level"=0 "msg"="released" "component"="Widget shop/main" "revision"=2 "objects"=1 "first"="ConfigMap shop/x" "why"="it belongs to Helm"`,
		`"level"=0 "msg"="recreated" "component"="Widget shop/main" "revision"=2 "objects"=1 "first"="ConfigMap shop/y" "why"="the field is immutable"`,
		`"level"=0 "msg"="upgraded" "component"="Widget shop/main" "revision"=2 "dependents"="3/3" "replaced"=2 "deleted"=1`)

	s.obj.Generation++
	s.reconcile(done(nil), nil)
	s.expect("a change that concerns no dependent")

	failure := errors.New("create ConfigMap shop/a: no")
	for range 3 {
		s.reconcile(reconciler.Outcome{Total: 3}, failure)
	}
	s.expect("an error, three times", `"msg"="failed" "error"="create ConfigMap shop/a: no" "component"="Widget shop/main" "revision"=2 "reason"="Error"`)
	s.reconcile(reconciler.Outcome{Total: 3}, errors.New("another one"))
	s.expect("another error, at once")
	s.now = s.now.Add(telemetry.ErrorInterval)
	s.reconcile(reconciler.Outcome{Total: 3}, errors.New("another one"))
	s.expect("another error that lasts", `"msg"="failed" "error"="another one" "component"="Widget shop/main" "revision"=2 "reason"="Error"`)
	s.reconcile(done(nil), nil)
	s.expect("the end of an error", `"level"=0 "msg"="ready" "component"="Widget shop/main" "revision"=2 "dependents"="3/3"`)

	s.engine.outcome, s.engine.err = reconciler.Outcome{Steps: map[string]int{"delete": 3}, Total: 3, Settled: 3}, nil
	for range 2 {
		if _, err := s.h.deletion.delete(s.ctx(), s.obj, noCommit); err != nil {
			t.Fatal(err)
		}
	}
	s.expect("a deletion", `"level"=0 "msg"="deleted" "component"="Widget shop/main" "revision"=2 "dependents"="3/3" "deleted"=3`)
}

func TestAResumeIsAnUpgradeOnlyIfARevisionStarted(t *testing.T) {
	s := newLogStory(t)
	s.reconcile(done(map[string]int{"create": 3}), nil)
	s.log.lines = nil
	for range 2 {
		s.suspend()
	}
	s.reconcile(done(nil), nil)
	s.expect("a rest that was asked for",
		`"level"=0 "msg"="suspended" "component"="Widget shop/main" "revision"=1 "dependents"="3/3"`,
		`"level"=0 "msg"="resumed" "component"="Widget shop/main" "revision"=1 "dependents"="3/3"`)
	s.obj.Generation++
	s.reconcile(done(nil), nil)
	s.expect("a change that starts no revision")
	s.suspend()
	s.obj.Generation++
	s.obj.Spec.Size++
	s.reconcile(reconciler.Outcome{Total: 3, Waiting: []report.Wait{waitFor("/ConfigMap shop/a", "NotReady", "not yet")}}, nil)
	s.reconcile(done(nil), nil)
	s.expect("a revision that starts during a rest",
		`"level"=0 "msg"="suspended" "component"="Widget shop/main" "revision"=1 "dependents"="3/3"`,
		`"level"=0 "msg"="resumed" "component"="Widget shop/main" "revision"=2 "dependents"="0/3"`,
		`"level"=0 "msg"="upgraded" "component"="Widget shop/main" "revision"=2 "dependents"="3/3"`)
}

func TestTheDeletionOfASuspendedComponentIsNoResume(t *testing.T) {
	s := newLogStory(t)
	s.reconcile(done(map[string]int{"create": 3}), nil)
	s.log.lines = nil
	s.suspend()
	s.obj.DeletionTimestamp = &metav1.Time{Time: s.now}
	s.engine.outcome = reconciler.Outcome{Total: 3, Waiting: []report.Wait{waitFor("/ConfigMap shop/a", "Gone", "is being deleted")}}
	res, err := s.h.deletion.delete(s.ctx(), s.obj, noCommit)
	_ = s.h.report(s.ctx(), s.obj, session.Outcome{Phase: session.PhaseDelete, Result: res, Err: err})
	s.expect("a deletion", `"level"=0 "msg"="suspended" "component"="Widget shop/main" "revision"=1 "dependents"="3/3"`)
}
