// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/conclude"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/trigger"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
)

type generatorFunc = manifests.GeneratorFunc

var someInventory = v1alpha1.Inventory{Format: 1, Items: []v1alpha1.InventoryItem{{Kind: "ConfigMap", Version: "v1", Name: "a"}}}

// protectedKeys are what a component in the cluster of its operator cannot live without.
var protectedKeys = []report.Key{
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "widgets.test.corbel.run"},
	{Kind: "Namespace", Name: "default"}, {Kind: "Secret", Namespace: "default", Name: "test.corbel.run-digest-key"},
}

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
	if diff := cmp.Diff(protectedKeys, request.Protected); diff != "" {
		t.Errorf("protected (-want +got):\n%s", diff)
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

func TestThePodExplainsTheTimeoutAndWhatFailsIsAnError(t *testing.T) {
	engine := &fakeEngine{outcome: reconciler.Outcome{Total: 1}}
	h, _ := testHandler(t, engine)
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "api", Labels: map[string]string{"app": "api"}}
	pull := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "secret"}}
	h.targets.(*fakeTargets).target.Client = fake.NewFakeClient(
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: meta.Labels}}},
		&corev1.Pod{ObjectMeta: meta, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "api", State: pull}}}},
	)
	start, obj := h.now(), newWidget()
	for _, step := range []struct {
		at              time.Duration
		wait            report.WaitReason
		reason, message string
	}{
		{0, report.WaitReady, vocabulary.ReasonProcessing, "Deployment shop/api: 0 of 1"},
		{4 * time.Second, report.WaitReady, vocabulary.ReasonProcessing, "Deployment shop/api: 0 of 1; pod api: ImagePullBackOff"},
		{time.Hour, report.WaitReady, vocabulary.ReasonTimeout, "not ready after 10m0s: Deployment shop/api: 0 of 1; pod api: ImagePullBackOff"},
		{2 * time.Hour, report.WaitFailed, vocabulary.ReasonObjectFailed, "Deployment shop/api: 0 of 1"},
	} {
		h.now = func() time.Time { return start.Add(step.at) }
		if step.wait == report.WaitFailed {
			obj.Generation++ // the timeout starts again
		}
		engine.outcome.Waiting = []report.Wait{waitFor("apps/Deployment shop/api", string(step.wait), "0 of 1")}
		reconcileOnce(t, h, obj)
		if _, reason, message := obj.GetStatus().GetState(); reason != step.reason || message != step.message {
			t.Errorf("after %s: %s: %s", step.at, reason, message)
		}
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

func TestWhatWasFoundOutHoldsAsLongAsTheComponentIsTheSame(t *testing.T) {
	now := time.Unix(1000, 0)
	component := func(change func(*widget)) *widget {
		w := &widget{}
		w.Namespace, w.Name, w.UID, w.Generation = "shop", "main", "1", 3
		w.Status.ProcessingDigest = "digest/manifests"
		change(w)
		return w
	}
	unchanged := func(*widget) {}
	m := newMemory()
	known := renderCache{
		appliedRevision: appliedRevision{digest: "digest"}, inputs: inputs{renderedFrom: renderInputsOf(component(unchanged)), until: now.Add(time.Minute)},
	}
	m.keepRendered(client.ObjectKeyFromObject(component(unchanged)), known)
	for name, tc := range map[string]struct {
		component *widget
		now       time.Time
		want      bool
	}{
		"the same":                    {component: component(unchanged), now: now, want: true},
		"another spec":                {component: component(func(w *widget) { w.Generation = 4 }), now: now},
		"made anew":                   {component: component(func(w *widget) { w.UID = "2" }), now: now},
		"another annotation":          {component: component(func(w *widget) { w.Annotations = map[string]string{"tier": "gold"} }), now: now},
		"another label":               {component: component(func(w *widget) { w.Labels = map[string]string{"tier": "gold"} }), now: now},
		"another client wrote status": {component: component(func(w *widget) { w.Status.ProcessingDigest = "" }), now: now},
		"another component":           {component: component(func(w *widget) { w.Name = "other" }), now: now},
		"a full reconcile is due":     {component: component(unchanged), now: now.Add(time.Minute)},
	} {
		if _, got := m.renderedFor(tc.component, tc.now); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	m := newMemory()
	for i := range 10 {
		m.keepRendered(client.ObjectKey{Name: string(rune('a' + i))}, renderCache{size: maxRendered / 4})
		if m.rendered > maxRendered {
			t.Fatalf("%d bytes are kept", m.rendered)
		}
	}
	kept := 0
	for _, known := range m.byKey {
		if known.cache.size > 0 {
			kept++
		}
	}
	if kept != 4 {
		t.Errorf("the caches of %d components are kept", kept)
	}
	m.keepRendered(client.ObjectKey{Name: "large"}, renderCache{size: maxRendered + 1})
	if m.cacheOf(client.ObjectKey{Name: "large"}).size > 0 {
		t.Error("what is too much is kept")
	}
	for key := range m.byKey {
		m.deleteEntry(key)
	}
	if len(m.byKey) > 0 {
		t.Errorf("%d components are remembered", len(m.byKey))
	}
	if m.rendered != 0 {
		t.Errorf("%d bytes are left", m.rendered)
	}
}

// The causes of a full reconcile are dropped when it starts, so what was rendered before them
// must not be used after it has failed.
func TestAFullReconcileThatFailsEarlyDropsWhatWasRendered(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	h.digestKey, h.revisions.DigestKey = brokenKey, brokenKey
	obj := withRefs(widgetReferences{})
	obj.Status.ProcessingDigest, obj.Status.Inventory.Operator = "digest/manifests", &v1alpha1.InventoryOperator{Namespace: "red"}
	key := client.ObjectKeyFromObject(obj)
	h.memory.keepRendered(key, renderCache{appliedRevision: appliedRevision{digest: "digest"}, inputs: inputs{renderedFrom: renderInputsOf(obj), until: h.now().Add(time.Minute)}})
	if _, known := h.memory.renderedFor(obj, h.now()); !known {
		t.Fatal("nothing is known before the reconcile")
	}
	if _, err := h.applier.createOrUpdate(t.Context(), obj, func(context.Context) error { return nil }); err == nil {
		t.Error("the reconcile has not failed")
	}
	if _, known := h.memory.renderedFor(obj, h.now()); known {
		t.Error("the next reconcile may use what was rendered before")
	}
}

func brokenKey(context.Context) ([]byte, error) {
	return nil, errors.New("the Secret cannot be read")
}

// watchReferences returns a widget that refers to a ConfigMap, and lets the handler watch what it refers to.
func watchReferences(t *testing.T, h *handler) *widget {
	t.Helper()
	h.local = fake.NewFakeClient(configMapObject("settings", map[string]string{"a": "1"}))
	var err error
	ignore := func(client.ObjectKey) {}
	if h.watches, err = targets.NewWatches(&rest.Config{Host: "http://127.0.0.1:1"}, ignore, ignore); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.watches.Run(t.Context()) })
	return withRefs(widgetReferences{Settings: &ConfigMapReference{Name: "settings"}})
}

// What the hooks of a fast path see was not rendered, so a change of it still counts.
func TestTheHooksOfTheFastPathDoNotHideAChangeOfAReference(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	obj, seen := watchReferences(t, h), ""
	h.code.hooks[postReconcile] = hooksOf(func(_ context.Context, _ client.Client, w *widget) error {
		seen = w.Spec.Refs.Settings.Data()["a"]
		return nil
	})
	if err := h.applier.hooksAfterFastPath(h.basicContext(t.Context()), obj); err != nil || seen != "1" {
		t.Errorf("the hook saw %q, %v", seen, err)
	}
	if waiters := h.watches.ReferenceOwners(); waiters != 0 {
		t.Errorf("on the fast path %d components refer to something", waiters)
	}
	h.loadReferences(t.Context(), obj)
	if waiters := h.watches.ReferenceOwners(); waiters != 1 {
		t.Errorf("after a full reconcile %d components refer to something", waiters)
	}
	obj.Spec.Refs, obj.Spec.KubeConfig = nil, &KubeConfigSpec{SecretKeyReference{Name: "far"}}
	h.loadReferences(t.Context(), obj)
	if waiters := h.watches.ReferenceOwners(); waiters != 1 {
		t.Errorf("%d components refer to something, although one has a kubeconfig", waiters)
	}
	obj.Spec.KubeConfig = nil
	h.loadReferences(t.Context(), obj)
	if waiters := h.watches.ReferenceOwners(); waiters != 0 {
		t.Errorf("without a reference %d components refer to something", waiters)
	}
}

// It may be that types come to be served while nothing but dependents change.
func TestTheFastPathBecomesAFullReconcileIfTheCacheIsOutdated(t *testing.T) {
	engine := &outdated{fakeEngine: &fakeEngine{outcome: reconciler.Outcome{Total: 1, Settled: 1, Desired: &reconciler.DesiredSet{}}}}
	h, _ := testHandler(t, engine.fakeEngine)
	h.targets.(*fakeTargets).target.Engine = engine
	h.triggers.(*fakeTriggers).fast = true
	obj := newWidget()
	for range 2 {
		if _, err := h.applier.createOrUpdate(t.Context(), obj, noCommit); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(engine.applied); got != 2 || engine.light != 1 {
		t.Errorf("%d full reconciles and %d light ones, want 2 and 1", got, engine.light)
	}
}

func TestTheReconcileOfAnEditIsUrgent(t *testing.T) {
	for _, urgent := range []bool{false, true} {
		engine := &fakeEngine{}
		h, _ := testHandler(t, engine)
		h.triggers.(*fakeTriggers).urgent = urgent
		if _, err := h.applier.createOrUpdate(t.Context(), newWidget(), noCommit); err != nil {
			t.Fatal(err)
		}
		if len(engine.applied) != 1 || engine.applied[0].Urgent != urgent {
			t.Errorf("of an edit that comes first (%t), the request is %+v", urgent, engine.applied)
		}
	}
}

// outdated is an engine that what was wanted before is never enough for.
type outdated struct {
	*fakeEngine
	light int
}

func (e *outdated) Apply(ctx context.Context, request reconciler.ApplyRequest) (reconciler.Outcome, error) {
	if request.Desired != nil {
		e.light++
		return reconciler.Outcome{Inventory: request.Inventory}, reconciler.ErrOutdated
	}
	return e.fakeEngine.Apply(ctx, request)
}

// What was rendered for a component, and the watches that would requeue it, end with it.
func TestNothingIsKeptForReconcilesThatDoNotFollow(t *testing.T) {
	for name, tc := range map[string]struct {
		end func(*handler, *widget) error
		// unwatched: no change of its dependents requeues it any more; over: no later reconcile
		// uses the causes of earlier requeues.
		unwatched, over bool
	}{
		"it is gone, or belongs to another process": {func(h *handler, obj *widget) error {
			h.forgetComponent(t.Context(), client.ObjectKeyFromObject(obj))
			return nil
		}, true, true},
		"it is suspended": {func(h *handler, obj *widget) error { h.suspend(obj); return nil }, true, false},
		"it is being deleted": {func(h *handler, obj *widget) error {
			_, err := h.deletion.delete(t.Context(), obj, noCommit)
			return err
		}, false, false},
	} {
		h, _ := testHandler(t, &fakeEngine{outcome: reconciler.Outcome{Total: 1, Settled: 1, Desired: &reconciler.DesiredSet{}}})
		queue := trigger.New()
		h.triggers = queue
		obj := watchReferences(t, h)
		h.loadReferences(t.Context(), obj)
		key := client.ObjectKeyFromObject(obj)
		h.memory.keepRendered(key, renderCache{size: 1})
		queue.DependentChanged(h.self.Owner(obj), reconciler.Change{What: reconciler.EventContent})
		check(t, tc.end(h, obj))
		if h.memory.cacheOf(key).size > 0 {
			t.Errorf("%s: what was rendered is kept", name)
		}
		if refers := h.watches.ReferenceOwners() > 0; refers == tc.unwatched {
			t.Errorf("%s: it depends on what it refers to: %t", name, refers)
		}
		if forgotten := slices.Contains(h.targets.(*fakeTargets).forgotten, h.self.OwnerOf(key)); forgotten != tc.unwatched {
			t.Errorf("%s: its watches have ended: %t", name, forgotten)
		}
		if queue.StartReconcile(key); tc.over && queue.TakeCauses(key) {
			t.Errorf("%s: what its next reconcile would be for is kept", name)
		}
	}
}
