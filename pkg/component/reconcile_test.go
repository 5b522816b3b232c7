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

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/conclude"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
)

type generatorFunc = manifests.GeneratorFunc

var someInventory = v1alpha1.Inventory{Format: 1, Items: []v1alpha1.InventoryItem{{Kind: "ConfigMap", Version: "v1", Name: "a"}}}

func TestCreateOrUpdateAsksTheEngine(t *testing.T) {
	engine := &fakeEngine{record: true, outcome: reconciler.Outcome{Inventory: someInventory, Settled: 1, Total: 1, ManifestDigest: "m1", Steps: map[string]int{"create": 1}}}
	h, _ := testHandler(t, engine)
	var parameters map[string]any
	var where string
	h.revisions.Renderer.Generator = generatorFunc(func(_ context.Context, namespace, name string, p types.Unstructurable) ([]client.Object, error) {
		where, parameters = namespace+"/"+name, p.ToUnstructured()
		return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}, nil
	})
	obj := withSpec(widgetSpec{Size: 3, PlacementSpec: PlacementSpec{Namespace: "other", Name: "renamed"}, ReapplySpec: ReapplySpec{duration("1h")},
		PolicySpec: PolicySpec{DeletePolicy: v1alpha1.DeletePolicyOrphan}})
	var committed Status
	res, err := h.applier.createOrUpdate(t.Context(), obj, func(context.Context) error { committed = *obj.GetStatus(); return nil })
	if res != result.Success || err != nil {
		t.Fatalf("result %v, error %v", res, err)
	}
	if where != "other/renamed" || parameters["size"] != int64(3) {
		t.Errorf("the generator got %s and %v", where, parameters)
	}
	request := engine.applied[0]
	if request.Owner != (reconciler.Owner{Group: "test.corbel.run", Kind: "Widget", Namespace: "shop", Name: "main", UID: "uid-1"}) ||
		request.Namespace != "other" || len(request.Objects) != 1 || request.Policies.ReapplyInterval != time.Hour || request.Policies.Delete != v1alpha1.DeletePolicyOrphan || request.ComponentDigest == "" {
		t.Errorf("the engine got %+v", request)
	}
	if by := committed.Inventory.Operator; by == nil || by.Namespace != "default" || len(by.Key) != 8 {
		t.Errorf("the record names the operator %+v", by)
	}
	committed.Inventory.Operator = nil
	if diff := cmp.Diff(someInventory, committed.Inventory); diff != "" || committed.Revision != 1 {
		t.Errorf("committed before acting, revision %d (-want +got):\n%s", committed.Revision, diff)
	}
	status := obj.GetStatus()
	if status.Progress != "1/1" || status.AppliedGeneration != 1 || status.ProcessingSince != nil || status.LastAppliedAt == nil ||
		!strings.HasPrefix(status.ProcessingDigest, request.ComponentDigest+"/m1/") {
		t.Errorf("status %+v", status)
	}
}

func TestRefusedRecordChangesNothing(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{record: true, outcome: reconciler.Outcome{Inventory: someInventory}})
	obj := newWidget()
	refused := errors.New("refused")
	_, err := h.applier.createOrUpdate(t.Context(), obj, func(context.Context) error { return refused })
	if !errors.Is(err, refused) || len(obj.GetStatus().Inventory.Items) != 0 {
		t.Errorf("error %v, inventory %v", err, obj.GetStatus().Inventory)
	}
}

// reconcileOnce runs CreateOrUpdate or Delete and report, as reconcile does.
func reconcileOnce(t *testing.T, h *handler, obj *widget) result.Verdict {
	t.Helper()
	outcome := session.Outcome{Phase: session.PhaseApply}
	if obj.DeletionTimestamp.IsZero() {
		outcome.Result, outcome.Err = h.applier.createOrUpdate(t.Context(), obj, noCommit)
	} else {
		outcome.Phase = session.PhaseDelete
		outcome.Result, outcome.Err = h.deletion.delete(t.Context(), obj, noCommit)
	}
	verdict := h.report(t.Context(), obj, outcome)
	conditionstest.Check(t, conditionsOf(obj))
	return verdict
}

func TestTimeoutCountsFromTheLastChange(t *testing.T) {
	engine := &fakeEngine{outcome: reconciler.Outcome{Waiting: []report.Wait{waitFor("/ConfigMap shop/a", "NotReady", "not yet")}, Total: 1, ManifestDigest: "m1"}}
	h, _ := testHandler(t, engine)
	start := h.now()
	now := start
	h.now = func() time.Time { return now }
	obj := withSpec(widgetSpec{TimeoutSpec: TimeoutSpec{duration("1m")}})
	expect := func(at time.Duration, state v1alpha1.State, reason string) {
		t.Helper()
		now = start.Add(at)
		reconcileOnce(t, h, obj)
		if gotState, gotReason, message := obj.GetStatus().GetState(); gotState != state || gotReason != reason {
			t.Errorf("at %s: %s, %s: %s", at, gotState, gotReason, message)
		}
	}
	expect(0, v1alpha1.StateProcessing, vocabulary.ReasonProcessing)
	expect(59*time.Second, v1alpha1.StateProcessing, vocabulary.ReasonProcessing)
	expect(60*time.Second, v1alpha1.StateError, vocabulary.ReasonTimeout)
	if engine.applied[2].TimedOut {
		t.Error("the engine is told of the timeout before a failure is reported")
	}
	expect(61*time.Second, v1alpha1.StateError, vocabulary.ReasonTimeout)
	if !engine.applied[3].TimedOut {
		t.Error("the engine is not told of the timeout")
	}
	engine.outcome.ManifestDigest = "m2"
	expect(70*time.Second, v1alpha1.StateProcessing, vocabulary.ReasonProcessing)
	expect(130*time.Second, v1alpha1.StateError, vocabulary.ReasonTimeout)
	obj.Generation++
	expect(140*time.Second, v1alpha1.StateProcessing, vocabulary.ReasonProcessing)
	if last := engine.applied[len(engine.applied)-1]; last.TimedOut {
		t.Error("the timeout of the former generation counts for the next one")
	}
	expect(200*time.Second, v1alpha1.StateError, vocabulary.ReasonTimeout)
	waiting := engine.outcome.Waiting
	engine.outcome.Waiting, engine.outcome.Settled = nil, 1
	expect(210*time.Second, v1alpha1.StateReady, vocabulary.ReasonReady)
	engine.outcome.Waiting, engine.outcome.Settled = waiting, 0
	expect(400*time.Second, v1alpha1.StateProcessing, vocabulary.ReasonProcessing)
	expect(460*time.Second, v1alpha1.StateError, vocabulary.ReasonTimeout)
}

func TestMistakesOfTheComponent(t *testing.T) {
	tests := []struct {
		name      string
		component *widget
		message   string
	}{
		{"an unknown policy", withSpec(widgetSpec{PolicySpec: PolicySpec{DeletePolicy: "Maybe"}}), `Widget shop/main: DeletePolicy "Maybe": must be one of [Delete Orphan OrphanOnApply OrphanOnDelete]`},
		{"a kubeconfig without a name", withSpec(widgetSpec{ClientSpec: ClientSpec{&KubeConfigSpec{}}}), "Widget shop/main: spec.kubeConfig.secretRef: the name of the Secret is missing"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			engine := &fakeEngine{}
			h, _ := testHandler(t, engine)
			verdict := reconcileOnce(t, h, test.component)
			state, reason, message := test.component.GetStatus().GetState()
			if state != v1alpha1.StateError || reason != vocabulary.ReasonSpecInvalid || message != test.message || verdict.Outcome != result.Stalled || len(engine.applied) != 0 {
				t.Errorf("%s, %s: %s; %+v", state, reason, message, verdict)
			}
		})
	}
}

// The timeout does not count for a container that has never ended.
func TestTheTimeoutDoesNotEndTheFirstStartOfAContainer(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	for settling, timedOut := range map[time.Duration]bool{0: true, 10 * time.Second: true, 2 * time.Minute: false} {
		obj := newWidget()
		obj.Status.ProcessingSince = &metav1.Time{Time: h.now().Add(-intervalsOf(obj).Timeout - time.Minute)}
		reportReconcile(t, h, obj, &verdict.UnfinishedError{Facts: verdict.Facts{Waiting: "Deployment shop/api", Settling: settling}})
		if _, reason, _ := obj.GetStatus().GetState(); (reason == vocabulary.ReasonTimeout) != timedOut {
			t.Errorf("settling %v: %s", settling, reason)
		}
	}
}

func TestAMendedStatusKeepsItsInventory(t *testing.T) {
	decode := func(content map[string]any) error {
		return runtime.DefaultUnstructuredConverter.FromUnstructured(content, &widget{})
	}
	record := map[string]any{"format": "three"}
	stored := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"revision": "one", "inventory": record, "progress": "1/1",
		"conditions": []any{map[string]any{"type": "Done", "status": true}, "no condition"},
	}}}
	mistake := &undecodableError{object: stored, err: decode(stored.Object), decode: decode}
	if mistake.mendStatus() {
		t.Error("a record that cannot be read counts as mended")
	}
	want := map[string]any{"inventory": record, "progress": "1/1", "conditions": []any{map[string]any{"type": "Done"}}}
	if diff := cmp.Diff(want, stored.Object["status"]); diff != "" {
		t.Errorf("the status (-want +got):\n%s", diff)
	}
	record["format"] = int64(3)
	if !mistake.mendStatus() {
		t.Error("a status that decodes is not mended")
	}
	stored.Object["status"] = "fine"
	if _, left := stored.Object["status"]; !mistake.mendStatus() || !left {
		t.Error("a status that is no object is not dropped")
	}
	stored.Object["spec"] = "none"
	if mistake.mendStatus() {
		t.Error("a spec that does not decode is mended")
	}
}

func TestAServerThatHasTooMuchToDoIsNoError(t *testing.T) {
	busy := fmt.Errorf("create ConfigMap shop/a: %w", apierrors.NewTooManyRequests("later", 7))
	broken := errors.New("create ConfigMap shop/b: refused")
	for name, tc := range map[string]struct {
		err   error
		state v1alpha1.State
		after time.Duration
	}{
		"one object":              {err: busy, state: v1alpha1.StatePending, after: 7 * time.Second},
		"all objects":             {err: errors.Join(busy, busy), state: v1alpha1.StatePending, after: 7 * time.Second},
		"without a delay":         {err: apierrors.NewTooManyRequests("later", 0), state: v1alpha1.StatePending, after: time.Second},
		"another object is wrong": {err: errors.Join(busy, broken), state: v1alpha1.StateError},
	} {
		v := verdict.Evaluate(verdict.Facts{Err: tc.err, Intervals: verdict.Intervals{Retry: time.Minute, Requeue: time.Hour}})
		if v.State != tc.state {
			t.Errorf("%s: state %s, %v", name, v.State, v.Err)
		}
		if v.After != tc.after || (v.Err == nil) != (tc.after > 0) {
			t.Errorf("%s: comes again after %s, %v", name, v.After, v.Err)
		}
	}
}

func TestADriftCheckThatWasPutOffIsMadeByAReconcileOfItsOwn(t *testing.T) {
	engine := &fakeEngine{outcome: reconciler.Outcome{Total: 1, Settled: 1}}
	h, _ := testHandler(t, engine)
	asked := h.triggers.(*fakeTriggers).asked
	obj := newWidget()
	reconcileOnce(t, h, obj)
	if len(asked) > 0 {
		t.Errorf("asked for is %v, for nothing", asked)
	}
	for again, want := range map[time.Duration]time.Duration{time.Minute: time.Minute, -time.Minute: conclude.MinDelay} {
		engine.outcome.NextDriftCheck = h.now().Add(again)
		reconcileOnce(t, h, obj)
		if got := asked[client.ObjectKeyFromObject(obj)]; got != want {
			t.Errorf("due in %s: asked for is a reconcile after %s", again, got)
		}
	}
}

// Nothing else makes it come before the requeue interval: it is stalled.
func TestAContestedObjectIsCorrectedInTimeAlthoughAnotherOneIsStalled(t *testing.T) {
	engine := &fakeEngine{err: result.NewStalling(errors.New("ConfigMap shop/b belongs to Helm"), "Conflict")}
	h, _ := testHandler(t, engine)
	first, second := waitFor("/ConfigMap shop/a", string(report.WaitConflict), ""), waitFor("/ConfigMap shop/c", string(report.WaitConflict), "")
	first.Until, second.Until = h.now().Add(4*time.Second), h.now().Add(9*time.Second)
	engine.outcome = reconciler.Outcome{Total: 3, Settled: 0, Waiting: []report.Wait{second, first}}
	asked := h.triggers.(*fakeTriggers).asked
	obj := newWidget()
	reconcileOnce(t, h, obj)
	if got := asked[client.ObjectKeyFromObject(obj)]; got != 4*time.Second {
		t.Errorf("asked for is a reconcile after %s", got)
	}
}

// A fast path may be the one that makes the component ready: after a full one that had
// to wait, or one over a generation that was ready before.
func TestPostReconcileHooksRunAlthoughAnEarlierStateWasReady(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Status)
		runs   bool
	}{
		"all was done":              {func(*Status) {}, false},
		"of an earlier generation":  {func(s *Status) { s.AppliedGeneration = 0 }, true},
		"something is in the works": {func(s *Status) { s.ProcessingSince = new(metav1.Now()) }, true},
		"it was not ready":          {func(s *Status) { s.State = v1alpha1.StateProcessing }, true},
	} {
		h, _ := testHandler(t, &fakeEngine{outcome: reconciler.Outcome{Total: 1, Settled: 1, ManifestDigest: "m1"}})
		obj := newWidget()
		reconcileOnce(t, h, obj)
		if obj.GetStatus().State != v1alpha1.StateReady {
			t.Fatalf("%s: the state is %s", name, obj.GetStatus().State)
		}
		conditionstest.Check(t, conditionsOf(obj))
		runs := 0
		h.code.hooks[postReconcile] = hooksOf(func(context.Context, client.Client, *widget) error { runs++; return nil })
		tc.change(obj.GetStatus())
		check(t, h.applier.hooksAfterFastPath(h.basicContext(t.Context()), obj))
		if runs > 0 != tc.runs {
			t.Errorf("%s: it was called %d times", name, runs)
		}
	}
}

func TestASuspensionSaysUntilWhenAndWhy(t *testing.T) {
	const suspend, reason = "test.corbel.run/suspend", "test.corbel.run/suspend-reason"
	engine := &fakeEngine{}
	h, _ := testHandler(t, engine)
	far, near := metav1.NewTime(h.now().Add(time.Hour)), h.now().Add(-time.Hour)
	text := far.UTC().Format(time.RFC3339)
	for _, test := range []struct {
		name        string
		annotations map[string]string
		spec        SuspensionSpec
		want        string // empty: it is not suspended
		ends        bool   // and so it is requeued
	}{
		{name: "not suspended"},
		{name: "by the annotation", annotations: map[string]string{suspend: "true"}, want: "suspended"},
		{name: "by the annotation, with a reason", annotations: map[string]string{suspend: "true", reason: "incident 7"}, want: "suspended: incident 7"},
		{name: "by the annotation, with a long reason", annotations: map[string]string{suspend: "true", reason: strings.Repeat("x", 200_000)},
			want: "suspended: " + strings.Repeat("x", 317) + "…"},
		{name: "by the annotation, with an end", annotations: map[string]string{suspend: text}, want: "suspended until " + text, ends: true},
		{name: "an annotation that has ended", annotations: map[string]string{suspend: near.Format(time.RFC3339)}},
		{name: "an annotation that is false", annotations: map[string]string{suspend: "false"}},
		{name: "by the spec", spec: SuspensionSpec{Suspend: true, SuspendReason: "incident 8"}, want: "suspended: incident 8"},
		{name: "by the spec, with an end", spec: SuspensionSpec{Suspend: true, SuspendUntil: &far}, want: "suspended until " + text, ends: true},
		{name: "a spec that has ended", spec: SuspensionSpec{Suspend: true, SuspendUntil: &metav1.Time{Time: near}}},
		{name: "both, and the annotation has ended", annotations: map[string]string{suspend: near.Format(time.RFC3339), reason: "old"},
			spec: SuspensionSpec{Suspend: true, SuspendReason: "incident 9"}, want: "suspended: incident 9"},
		{name: "both, and the annotation will end", annotations: map[string]string{suspend: text}, spec: SuspensionSpec{Suspend: true}, want: "suspended"},
		{name: "both, and the spec will end", annotations: map[string]string{suspend: "true"},
			spec: SuspensionSpec{Suspend: true, SuspendUntil: &far}, want: "suspended"},
		{name: "a mistake in the annotation, and the spec", annotations: map[string]string{suspend: "x"},
			spec: SuspensionSpec{Suspend: true}, want: "suspended"},
		{name: "an annotation with the zero time", annotations: map[string]string{suspend: "0001-01-01T00:00:00Z"}},
		{name: "terms of no suspension", spec: SuspensionSpec{SuspendUntil: &far, SuspendReason: "x"}},
	} {
		obj := withSpec(widgetSpec{SuspensionSpec: test.spec})
		obj.Annotations = test.annotations
		suspended := h.isSuspended(obj)
		if suspended != (test.want != "") {
			t.Errorf("%s: suspended %t", test.name, suspended)
		}
		if !suspended {
			continue
		}
		after := h.report(t.Context(), obj, session.Outcome{Phase: session.PhaseSkip}).Result.RequeueAfter
		if state, _, message := obj.GetStatus().GetState(); state != v1alpha1.StateSuspended || message != test.want {
			t.Errorf("%s: %s: %s", test.name, state, message)
		}
		if ends := after > 0; ends != test.ends || after > time.Hour {
			t.Errorf("%s: requeued after %s", test.name, after)
		}
	}

	obj := newWidget()
	obj.Annotations = map[string]string{suspend: "tomorrow"}
	reconcileOnce(t, h, obj)
	if _, got, message := obj.GetStatus().GetState(); h.isSuspended(obj) || got != vocabulary.ReasonSpecInvalid || len(engine.applied) > 0 ||
		!strings.Contains(message, `annotation `+suspend+`: "tomorrow" must be "true", "false" or a time`) {
		t.Errorf("%s: %s", got, message)
	}
}
