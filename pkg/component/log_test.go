// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/rights"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/telemetry"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
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

// eventLog is a recorder that keeps its events.
type eventLog struct {
	lines []string
	about runtime.Object // the last event
}

func (l *eventLog) Eventf(about, _ runtime.Object, eventType, reason, action, note string, args ...any) {
	l.about, l.lines = about, append(l.lines, strings.Join([]string{eventType, reason, action, fmt.Sprintf(note, args...)}, "|"))
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
		h.concluder.MemoryOf(obj).Activity.Add(o)
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
	var alternating []report.Note
	for i := range 3000 { // more than are kept
		note := noteAbout(fmt.Sprintf("object-%d", i))
		if i%2 == 1 {
			note.Reason = "Retained"
		}
		alternating = append(alternating, note)
	}
	h.concluder.MemoryOf(obj).Activity.Add(reconciler.Outcome{Notes: alternating})
	reportReconcile(t, h, obj, nil)
	expect("Normal|Adopted|Apply|ConfigMap shop/object-0: adopted; ConfigMap shop/object-2: adopted; ConfigMap shop/object-4: adopted; and 1497 more",
		"Normal|Retained|Apply|ConfigMap shop/object-1: adopted; ConfigMap shop/object-3: adopted; ConfigMap shop/object-5: adopted; and 1497 more")

	harm := noteAbout("theirs")
	harm.Reason, harm.Warning, harm.Message = "ForeignInstancesLost", true, "lost"
	h.concluder.MemoryOf(obj).Activity.Add(reconciler.Outcome{Notes: []report.Note{noteAbout("a"), harm}})
	reportReconcile(t, h, obj, nil)
	expect("Warning|ForeignInstancesLost|Apply|ConfigMap shop/theirs: lost", "Normal|Adopted|Apply|ConfigMap shop/a: adopted")

	outcome(1)
	h.forgetComponent(t.Context(), key)
	reportReconcile(t, h, obj, nil)
	expect()
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

func TestMissingRightsAreLoggedOnce(t *testing.T) {
	denied := &reconciler.ForbiddenError{Object: "ConfigMap shop/a", Message: "no"}
	missing := rights.Missing{{Namespace: "shop", Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"delete"}},
	}}}
	engine := &fakeEngine{}
	h, _ := testHandler(t, engine)
	log := &logLines{}
	ctx, obj := logf.IntoContext(t.Context(), log.logger()), newWidget()
	// Rights that are held, and missing again, are named again.
	for i, want := range []int{1, 1, 1, 2} {
		engine.outcome, engine.err = reconciler.Outcome{Total: 1, Missing: missing}, denied
		if i == 2 {
			engine.outcome, engine.err = reconciler.Outcome{Total: 1, Settled: 1}, nil
		}
		if _, err := h.applier.createOrUpdate(ctx, obj, func(context.Context) error { return nil }); (err == nil) != (engine.err == nil) {
			t.Fatal(err)
		}
		named := 0
		for _, line := range log.lines {
			if strings.Contains(line, "rights are missing") && strings.Contains(line, "in namespace shop rules: [{apiGroups: [''], resources: [configmaps], verbs: [delete]}]") {
				named++
			}
		}
		if named != want {
			t.Errorf("reconcile %d: log: %q", i, log.lines)
		}
	}
}

func TestAConditionNamesAsManyRulesAsFitAndTheLogAll(t *testing.T) {
	scope := rights.Missing{{Namespace: "shop"}}
	for i := range 60 {
		scope[0].Rules = append(scope[0].Rules, rbacv1.PolicyRule{APIGroups: []string{fmt.Sprintf("group-%02d.example.com", i)}, Resources: []string{"things"}, Verbs: []string{"get", "create"}})
	}
	denied := errors.Join(&reconciler.ForbiddenError{Object: "Thing shop/a", Message: "no"}, types.NewRetriableError(errors.New("a reference is missing"), nil))
	h, _ := testHandler(t, &fakeEngine{outcome: reconciler.Outcome{Total: 60, Missing: scope}, err: denied})
	log := &logLines{}
	ctx := logf.IntoContext(t.Context(), log.logger())
	obj := newWidget()
	_, err := h.applier.createOrUpdate(ctx, obj, func(context.Context) error { return nil })
	_ = h.report(ctx, obj, session.Outcome{Phase: session.PhaseApply, Err: err})
	state, reason, message := obj.GetStatus().GetState()
	if state != v1alpha1.StateError || reason != vocabulary.ReasonForbidden {
		t.Errorf("%s, %s", state, reason)
	}
	for _, text := range []string{"60 rules, all of which are in the log of the operator: in namespace shop rules: [", "Thing shop/a: no"} {
		if !strings.Contains(message, text) {
			t.Errorf("the message lacks %q: %s", text, message)
		}
	}
	if len(message) > 1024 || !strings.Contains(log.lines[0], "group-59.example.com") {
		t.Errorf("%d bytes: %s\nlog: %q", len(message), message, log.lines)
	}
}

func TestTheTimeoutPausesWhileARightIsMissing(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	obj := newWidget()
	start := h.now()
	report := func(after time.Duration, err error) (v1alpha1.State, string) {
		t.Helper()
		h.now = func() time.Time { return start.Add(after) }
		_ = h.report(t.Context(), obj, session.Outcome{Phase: session.PhaseApply, Err: err})
		state, reason, _ := obj.GetStatus().GetState()
		return state, reason
	}
	timeout := intervalsOf(obj).Timeout
	waiting := &verdict.UnfinishedError{Facts: verdict.Facts{Waiting: "Deployment shop/api: 0 of 1 updated", Fallback: time.Minute}}
	forbidden := &reconciler.ForbiddenError{Object: "Deployment shop/api", Message: "no"}
	for i, step := range []struct {
		after  time.Duration
		err    error
		reason string
	}{
		{0, waiting, vocabulary.ReasonProcessing},
		{timeout / 2, forbidden, vocabulary.ReasonForbidden},
		{3 * timeout, &verdict.UnfinishedError{Facts: verdict.Facts{Err: forbidden, Fallback: time.Minute}, Cause: forbidden}, vocabulary.ReasonForbidden},
		{3*timeout + time.Second, waiting, vocabulary.ReasonProcessing},
		{3*timeout + 2*time.Second, forbidden, vocabulary.ReasonForbidden},
		{3*timeout + 3*time.Second, waiting, vocabulary.ReasonProcessing},
		{3*timeout + timeout/2 + 2*time.Second, waiting, vocabulary.ReasonTimeout},
	} {
		if state, reason := report(step.after, step.err); reason != step.reason {
			t.Errorf("step %d: %s, %s; want %s", i, state, reason, step.reason)
		}
	}
}

func TestAForbiddenImpersonationNamesTheAccountAndTheRule(t *testing.T) {
	const answer = `User "op" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "shop"`
	for name, c := range map[string]struct{ account, answer, want string }{
		"a service account": {account: "deployer", answer: answer,
			want: `the operator cannot impersonate ServiceAccount shop/deployer, which the component names (serviceAccountName) or the option DefaultServiceAccount; ` +
				`it lacks rights: in namespace shop rules: [{apiGroups: [''], resources: [serviceaccounts], resourceNames: [deployer], verbs: [impersonate]}]; generator: `},
		"another right":    {account: "deployer", answer: `User "op" cannot get path "/version"`},
		"no impersonation": {answer: answer},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := testHandler(t, &fakeEngine{})
			obj := newWidget()
			obj.Namespace, obj.Spec.ServiceAccountName = "shop", c.account
			err := fmt.Errorf("generator: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts"}, c.account, errors.New(c.answer)))
			_ = h.report(t.Context(), obj, session.Outcome{Phase: session.PhaseApply, Err: err})
			_, reason, message := obj.GetStatus().GetState()
			if reason != vocabulary.ReasonForbidden || !strings.HasPrefix(message, c.want) || !strings.Contains(message, c.answer) {
				t.Errorf("%s: %s", reason, message)
			}
			if c.want == "" && strings.Contains(message, "lacks rights") {
				t.Errorf("names rights: %s", message)
			}
		})
	}
}
