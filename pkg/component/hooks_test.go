// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
)

func TestRunHooks(t *testing.T) {
	fails := func(context.Context, client.Client, *widget) error { return errors.New("no") }
	note := func(text string) HookFunc[*widget] {
		return func(_ context.Context, _ client.Client, w *widget) error { w.Status.Note += text; return nil }
	}
	tests := []struct {
		name  string
		hooks []HookFunc[*widget]
		note  string
		err   string
	}{
		{name: "none"},
		{name: "all, in their order", hooks: []HookFunc[*widget]{note("a"), note("b"), note("c")}, note: "abc"},
		{name: "until one fails", hooks: []HookFunc[*widget]{note("a"), fails, note("c")}, note: "a", err: "pre-delete hook 2: no"},
		{name: "an ignored error is none", hooks: []HookFunc[*widget]{
			func(context.Context, client.Client, *widget) error {
				return &result.Generic{Ignore: true, Err: errors.New("no")}
			}, note("b")}, note: "b"},
		{name: "the kind must not change", hooks: []HookFunc[*widget]{func(_ context.Context, _ client.Client, w *widget) error { w.Kind = "Gadget"; return nil }},
			err: "pre-delete hook 1: changed more of the component than its status"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h, _ := testHandler(t, &fakeEngine{})
			h.code.hooks[preDelete] = hooksOf(test.hooks...)
			obj := newWidget()
			err := h.runHooks(t.Context(), preDelete, obj)
			if test.err != "" {
				checkMistakes(t, err, test.err)
			} else if err != nil {
				t.Error(err)
			}
			if obj.Status.Note != test.note {
				t.Errorf("the component became %+v", obj)
			}
		})
	}
}

func TestHooksCannotHarmOurStatus(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	h.code.hooks[postRead] = hooksOf(func(_ context.Context, _ client.Client, w *widget) error {
		w.Status = widgetStatus{Note: "mine", Status: Status{Conditions: []metav1.Condition{
			{Type: "Backup", Status: metav1.ConditionTrue}, {Type: "Ready", Status: metav1.ConditionTrue},
		}}}
		return nil
	})
	obj := newWidget()
	obj.Status.State, obj.Status.Inventory = v1alpha1.StateProcessing, v1alpha1.Inventory{Items: []v1alpha1.InventoryItem{{Name: "a"}}}
	obj.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionUnknown}}
	want := obj.Status
	want.Note = "mine"
	want.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionUnknown}, {Type: "Backup", Status: metav1.ConditionTrue}}
	check(t, h.runHooks(t.Context(), postRead, obj))
	if diff := cmp.Diff(want, obj.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestContextOfHooksAndGenerators(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	h.local = client.NewNamespacedClient(nil, "local")
	h.targets.(*fakeTargets).target.Client = client.NewNamespacedClient(nil, "target")
	var seen []string
	look := func(ctx context.Context) {
		var have []string
		known := manifests.FromContext(ctx)
		add := func(name string, there bool) {
			if there {
				have = append(have, name)
			}
		}
		add("reconciler", known.ReconcilerName != "")
		add("local", known.LocalClient != nil)
		_, err := ClientFromContext(ctx)
		add("client", err == nil)
		add("digest", known.Digest != "")
		add("revision"+strings.Repeat("+", int(known.Revision)), known.Revision > 0)
		if known.Component != nil {
			add(known.Component.GetNamespace()+"/"+known.Component.GetName(), true)
		}
		seen = append(seen, strings.Join(have, " "))
	}
	hook := func(ctx context.Context, _ client.Client, _ *widget) error { look(ctx); return nil }
	for _, point := range []hookPoint{postRead, preReconcile, postReconcile} {
		h.code.hooks[point] = hooksOf(hook)
	}
	h.revisions.Renderer.Generator = generatorFunc(func(ctx context.Context, _, _ string, _ types.Unstructurable) ([]client.Object, error) {
		look(ctx)
		return nil, nil
	})
	if _, err := h.applier.createOrUpdate(t.Context(), newWidget(), noCommit); err != nil {
		t.Fatal(err)
	}
	const full = "reconciler local client digest revision+ shop/main"
	// The generator is called twice after a change.
	want := []string{"reconciler local shop/main", full, full, full}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("contexts (-want +got):\n%s", diff)
	}
}

type widgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []widget `json:"items"`
}

func (l *widgetList) DeepCopyObject() runtime.Object { return &widgetList{} }

// looped runs the handler in the real loop, over a component in a store.
type looped struct {
	*testing.T
	client  client.Client
	handler *handler
	refused error // the answer to writes of metadata
	dropped error // the answer to writes of the status
}

func newLooped(t *testing.T, h *handler, obj *widget) *looped {
	t.Helper()
	scheme := runtime.NewScheme()
	version := schema.GroupVersion{Group: widgetKind.Group, Version: "v1"}
	scheme.AddKnownTypes(version, &widget{}, &widgetList{})
	metav1.AddToGroupVersion(scheme, version)
	l := &looped{T: t, handler: h}
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&widget{}).WithObjects(obj).Build(), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
			if l.refused != nil {
				return l.refused
			}
			return c.Patch(ctx, obj, patch, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, obj client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if l.dropped != nil {
				return l.dropped
			}
			return c.SubResource(name).Patch(ctx, obj, patch, options...)
		},
	})
	h.local, l.client = c, c
	var err error
	h.sessions, err = session.New(session.Options[Component]{
		Client: c, Name: h.self.Name, Finalizer: h.self.Finalizer, New: h.author.new, Conditions: conditionsOf,
		ObservedGenerationAlways: true, Recorder: h.telemetry.Recorder,
	})
	check(t, err)
	return l
}

// reconcile runs one reconcile; the component is nil if it is gone then.
func (l *looped) reconcile() (*widget, ctrl.Result, error) {
	l.Helper()
	result, err := l.handler.reconcile(l.Context(), client.ObjectKey{Namespace: "shop", Name: "main"})
	after := &widget{}
	if getErr := l.client.Get(l.Context(), client.ObjectKey{Namespace: "shop", Name: "main"}, after); getErr != nil {
		return nil, result, err
	}
	conditionstest.Check(l, conditionsOf(after))
	return after, result, err
}

func TestAServerThatRefusesToStoreAComponentIsReportedByAnEvent(t *testing.T) {
	answer := apierrors.NewInvalid(widgetKind, "main", field.ErrorList{field.Invalid(field.NewPath("metadata"), "main", "that name is not allowed")})
	for what, refuse := range map[string]func(*looped){
		"metadata": func(l *looped) { l.refused = answer }, "status": func(l *looped) { l.dropped = answer },
	} {
		h, log := testHandler(t, &fakeEngine{})
		l := newLooped(t, h, newWidget())
		refuse(l)
		for range 2 {
			if _, err := h.reconcile(t.Context(), client.ObjectKeyFromObject(newWidget())); err == nil {
				t.Errorf("%s: what is not stored is no error", what)
			}
		}
		refusals := slices.DeleteFunc(slices.Clone(log.lines), func(line string) bool { return !strings.Contains(line, "WriteRefused") })
		if len(refusals) != 1 || !strings.HasPrefix(refusals[0], "Warning|WriteRefused|") || !strings.Contains(refusals[0], "that name is not allowed") {
			t.Errorf("%s: events %q", what, log.lines)
		}
	}
}

func TestAnUnknownAnnotationOfAComponentIsReportedByAnEvent(t *testing.T) {
	h, log := testHandler(t, &fakeEngine{outcome: reconciler.Outcome{Settled: 1, Total: 1}})
	obj := newWidget()
	obj.Annotations = map[string]string{"test.corbel.run/drift-policy": "repair", "example.com/other": "x"}
	l := newLooped(t, h, obj)
	for i, want := range []string{"", "test.corbel.run/apply-order, test.corbel.run/aprove; known are abandon, "} {
		obj, _, err := l.reconcile()
		check(t, err)
		unknown := slices.DeleteFunc(slices.Clone(log.lines), func(line string) bool { return !strings.HasPrefix(line, "Warning|UnknownAnnotation|") })
		if len(unknown) != i || !strings.Contains(strings.Join(unknown, "\n"), want) {
			t.Errorf("events %q, want %q", unknown, want)
		}
		obj.Annotations["test.corbel.run/aprove"], obj.Annotations["test.corbel.run/apply-order"] = "1", "1"
		check(t, l.client.Update(t.Context(), obj))
	}
}

// failedState is the state of a component with an error.
func failedState(deleting bool) v1alpha1.State {
	if deleting {
		return v1alpha1.StateDeleting
	}
	return v1alpha1.StateError
}

// positions are all there are, and how a component gets there.
var positions = []struct {
	point    hookPoint
	deleting bool
}{{postRead, false}, {preReconcile, false}, {postReconcile, false}, {postRead, true}, {preDelete, true}, {postDelete, true}}

func TestAHookThatMisbehavesIsNamedInEveryPosition(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	misbehaviours := []struct {
		name string
		hook HookFunc[*widget]
		says string
	}{
		{"panic", func(context.Context, client.Client, *widget) error { panic("oh") }, "panicked: oh"},
		{"deadline", func(context.Context, client.Client, *widget) error { <-hang; return nil }, "did not return within"},
		{"changed spec", func(_ context.Context, _ client.Client, w *widget) error { w.Spec.Size++; return nil }, "changed the spec of the component; it may change the status only"},
		{"changed metadata", func(_ context.Context, _ client.Client, w *widget) error { w.Finalizers = nil; return nil }, "changed the metadata of the component"},
		{"error", func(_ context.Context, _ client.Client, w *widget) error {
			w.Status.Note = "the licence is gone"
			w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{
				Type: "Licensed", Status: metav1.ConditionFalse, Reason: "Gone", LastTransitionTime: metav1.Now(),
			})
			return errors.New("no licence")
		}, "no licence"},
		{"a conflict of another object", func(context.Context, client.Client, *widget) error {
			return fmt.Errorf("patch Gadget shop/x: %w", patch.ErrConflict)
		}, "patch Gadget shop/x: the object was changed by another client"},
		{"a definition of another object that is outdated", func(context.Context, client.Client, *widget) error {
			return &patch.PrunedError{Object: "Gadget shop/x", Fields: []string{"status.a"}}
		}, "the API server does not keep status.a"},
	}
	for _, position := range positions {
		for _, test := range misbehaviours {
			t.Run(fmt.Sprintf("%s, deleting %v: %s", position.point, position.deleting, test.name), func(t *testing.T) {
				h, _ := testHandler(t, &fakeEngine{outcome: reconciler.Outcome{Settled: 1, Total: 1}})
				if test.name == "deadline" {
					h.code.hookTimeout, h.code.guard = 5*time.Millisecond, guard.New(0)
				}
				h.code.hooks[position.point] = hooksOf(test.hook)
				obj := newWidget()
				obj.Finalizers, obj.Status.Inventory.Format = []string{h.self.Finalizer}, v1alpha1.InventoryFormat
				if position.deleting {
					obj.DeletionTimestamp = new(metav1.Now())
				}
				after, result, err := newLooped(t, h, obj).reconcile()
				if after == nil {
					t.Fatal("the component is gone")
				}
				state, reason, message := after.GetStatus().GetState()
				if err == nil || state != failedState(position.deleting) || reason != vocabulary.ReasonError || result.RequeueAfter != 0 {
					t.Errorf("%s, %s; returned %+v, %v", state, reason, result, err)
				}
				if want := fmt.Sprintf("%s hook 1: %s", position.point, test.says); !strings.HasPrefix(message, want) {
					t.Errorf("the message is %q, want %q", message, want)
				}
				if after.Spec.Size != 0 || len(after.Finalizers) != 1 {
					t.Errorf("the component became %+v", after)
				}
				written := after.Status.Note != "" && apimeta.FindStatusCondition(after.Status.Conditions, "Licensed") != nil
				if written != (test.name == "error") {
					t.Errorf("what the hook has written to the status is saved: %t", written)
				}
			})
		}
	}
}

func TestHooksAreCalledInTheDocumentedOrderAndPreDeleteAfterBlockers(t *testing.T) {
	engine := &fakeEngine{outcome: reconciler.Outcome{Settled: 1, Total: 1}}
	h, _ := testHandler(t, engine)
	var calls []string
	for _, position := range positions {
		h.code.hooks[position.point] = hooksOf(func(_ context.Context, _ client.Client, w *widget) error {
			calls = append(calls, string(position.point))
			if w.Status.Note != "" && !strings.HasSuffix(strings.Join(calls, " "), w.Status.Note+" "+string(position.point)) && len(calls) > 1 {
				t.Errorf("%s does not see what the hook before it wrote: %q", position.point, w.Status.Note)
			}
			w.Status.Note = string(position.point)
			return nil
		})
	}
	l := newLooped(t, h, newWidget())
	expect := func(want string) *widget {
		t.Helper()
		calls = nil
		after, _, err := l.reconcile()
		if got := strings.Join(calls, " "); got != want || err != nil {
			t.Errorf("calls %q, want %q; error %v", got, want, err)
		}
		return after
	}
	expect("post-read pre-reconcile post-reconcile")
	waiting := engine.outcome
	engine.outcome.Waiting = []report.Wait{waitFor("/ConfigMap shop/a", "NotReady", "not yet")}
	expect("post-read pre-reconcile")
	engine.outcome = waiting
	engine.outcome.Inventory = someInventory
	after := expect("post-read pre-reconcile post-reconcile")
	if after == nil {
		t.Fatal("gone")
	}
	check(t, l.client.Delete(t.Context(), after))
	engine.blockers = []report.Blocker{{Dependent: "CustomResourceDefinition foos", Message: "2 instances"}}
	expect("post-read")
	engine.blockers = nil
	if after = expect("post-read pre-delete post-delete"); after != nil {
		t.Errorf("the component is still there: %+v", after)
	}
}

func TestAPanicInAMethodOfTheComponentIsReportedConsistently(t *testing.T) {
	defer func() { panickingMethod = "" }()
	for _, method := range []string{"GetSpec", "IsSuspended", "GetTimeout", "GetRequeueInterval", "GetDeploymentName", "GetImpersonationUser"} {
		for _, deleting := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, deleting %v", method, deleting), func(t *testing.T) {
				h, _ := testHandler(t, &fakeEngine{outcome: reconciler.Outcome{Inventory: someInventory, Waiting: []report.Wait{waitFor("/ConfigMap shop/a", "NotReady", "x")}}})
				obj := newWidget()
				obj.Finalizers, obj.Status.Inventory.Format = []string{h.self.Finalizer}, v1alpha1.InventoryFormat
				obj.Status.State, obj.Status.Inventory = v1alpha1.StateReady, someInventory
				if deleting {
					obj.DeletionTimestamp = new(metav1.Now())
				}
				l := newLooped(t, h, obj)
				panickingMethod = method
				after, _, err := l.reconcile()
				panickingMethod = ""
				if after == nil {
					t.Fatal("the component is gone")
				}
				state, reason, message := after.GetStatus().GetState()
				if deleting && (method == "IsSuspended" || method == "GetDeploymentName") {
					return // they are not asked
				}
				if err == nil || state != failedState(deleting) || reason != vocabulary.ReasonError || !strings.Contains(message, "panicked: "+method) {
					t.Errorf("%s, %s: %s; error %v", state, reason, message, err)
				}
				if len(after.Status.Inventory.Items) != 1 {
					t.Error("the inventory is lost")
				}
			})
		}
	}
}

// A reconcile that fails before the engine plans does not roll back, whatever an earlier reconcile has planned.
func TestAReconcileThatPlansNothingDoesNotRollBack(t *testing.T) {
	for policy, says := range map[string]string{"manage": "no metadata today", "perhaps": "perhaps"} { // the second fails before the session runs
		h, _ := testHandler(t, &fakeEngine{}, ReconcilerOptions{Revisions: RevisionOptions{RollbackOnFailure: true}})
		obj := newWidget()
		obj.Annotations = map[string]string{h.self.Annotation(v1alpha1.AnnotationManagementPolicy): policy}
		obj.Status.State, obj.Status.Revision, obj.Status.AppliedGeneration = v1alpha1.StateProcessing, 2, 1
		obj.Status.ProcessingSince = &metav1.Time{Time: h.now().Add(-time.Hour)}
		obj.Status.History = []v1alpha1.RevisionStatus{
			{Revision: 2, Result: v1alpha1.RevisionProcessing, AppliedAt: metav1.Unix(2, 0)}, {Revision: 1, Result: v1alpha1.RevisionReady, AppliedAt: metav1.Unix(1, 0), Digest: "kept"},
		}
		l := newLooped(t, h, obj)
		if policy == "manage" {
			l.refused = errors.New(says)
		}
		h.concluder.MemoryOf(obj).Run.Planned = true
		after, _, err := l.reconcile()
		if _, _, message := after.Status.GetState(); !strings.Contains(message+fmt.Sprint(err), says) {
			t.Errorf("%s: %v", message, err)
		}
		if after.Status.Rollback != nil {
			t.Errorf("it is rolled back: %+v", after.Status.Rollback)
		}
	}
}

func TestAComponentThatIsSuspendedBetweenTwoWavesStopsThereAndGoesOnLater(t *testing.T) {
	engine := &fakeEngine{outcome: reconciler.Outcome{Total: 2, Settled: 1, Inventory: someInventory, Waiting: []report.Wait{waitFor("/ConfigMap shop/b", "Order", "")}}}
	h, _ := testHandler(t, engine)
	l := newLooped(t, h, newWidget())
	for i, step := range []struct {
		suspend bool
		state   v1alpha1.State
		applied int
	}{{false, v1alpha1.StateProcessing, 1}, {true, v1alpha1.StateSuspended, 1}, {true, v1alpha1.StateSuspended, 1}, {false, v1alpha1.StateReady, 2}} {
		obj := &widget{}
		check(t, l.client.Get(t.Context(), client.ObjectKeyFromObject(newWidget()), obj))
		obj.Spec.Suspend = step.suspend
		check(t, l.client.Update(t.Context(), obj))
		if i == 3 {
			engine.outcome.Settled, engine.outcome.Waiting = 2, nil
		}
		after, _, err := l.reconcile()
		if err != nil || after.Status.State != step.state || len(engine.applied) != step.applied || len(after.Status.Inventory.Items) != 1 {
			t.Errorf("step %d: %v, %s; the engine was called %d times", i, err, after.Status.State, len(engine.applied))
		}
	}
}
