// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/kubeconfig"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
)

func TestTargetsThatCannotBeEntered(t *testing.T) {
	_, empty := kubeconfig.Parse([]byte{})
	tests := []struct {
		name    string
		err     error
		state   v1alpha1.State
		reason  string
		stalled bool
		message string
	}{
		{"an empty kubeconfig", empty, v1alpha1.StateError, vocabulary.ReasonKubeconfigEmpty, true, "Widget shop/main: kubeconfig: is empty"},
		{"the local cluster", target.ErrLocal, v1alpha1.StateError, vocabulary.ReasonTargetIsLocal, true, "Widget shop/main: the kubeconfig leads to the cluster that the component lives in"},
		{"an address that is not allowed", &target.UnreachableError{Err: fmt.Errorf("dial: %w", &cluster.AddressDeniedError{
			Address: netip.MustParseAddrPort("169.254.169.254:443"), Err: errors.New("no")})}, v1alpha1.StateError, vocabulary.ReasonTargetAddressDenied, true,
			"Widget shop/main: the target cluster cannot be reached: dial: connections to the address 169.254.169.254 are not allowed: no"},
		{"no answer", &target.UnreachableError{Err: errors.New("it did not answer within 10s")}, v1alpha1.StateError, vocabulary.ReasonTargetUnreachable, false,
			"Widget shop/main: the target cluster cannot be reached: it did not answer within 10s"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			engine := &fakeEngine{}
			h, _ := testHandler(t, engine)
			h.targets = &fakeTargets{err: test.err}
			obj := newWidget()
			verdict := reconcileOnce(t, h, obj)
			state, reason, message := obj.GetStatus().GetState()
			if state != test.state || reason != test.reason || conditions.IsStalled(conditionsOf(obj)) != test.stalled || !strings.HasPrefix(message, test.message) {
				t.Errorf("%s, %s: %s; %+v", state, reason, message, verdict)
			}
			if after := verdict.Result.RequeueAfter; verdict.Err != nil || !test.stalled && (after < unreachableDelay || after > 40*time.Second) {
				t.Errorf("comes again after %s, with the error %v", after, verdict.Err)
			}

			obj = deletedWidget(someInventory)
			reconcileOnce(t, h, obj)
			state, reason, message = obj.GetStatus().GetState()
			if state != v1alpha1.StateDeleting || reason != vocabulary.ReasonDeletionBlocked || !strings.HasPrefix(message, test.message) ||
				!strings.HasSuffix(message, `to give up the 1 object that may be left there, set the annotation test.corbel.run/abandon to "true"`) {
				t.Errorf("in deletion: %s, %s: %s", state, reason, message)
			}
			if len(engine.applied)+len(engine.deleted) > 0 {
				t.Error("the engine was asked")
			}
		})
	}
}

func TestAComponentWithABusyTargetIsRequeued(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	h.targets = &fakeTargets{err: target.ErrBusy}
	for _, obj := range []*widget{newWidget(), deletedWidget(someInventory)} {
		var err error
		if obj.DeletionTimestamp.IsZero() {
			_, err = h.applier.createOrUpdate(t.Context(), obj, noCommit)
		} else {
			_, err = h.deletion.delete(t.Context(), obj, noCommit)
		}
		if later, ok := errors.AsType[*result.RequeueError](err); !ok || later.After <= 0 || later.After > 11*time.Second {
			t.Errorf("got %v", err)
		}
	}
}

func TestAPlanWaitsForABusyTarget(t *testing.T) {
	for name, test := range map[string]struct {
		clusters *fakeTargets
		want     error
	}{
		"that is free later":   {&fakeTargets{busy: 3}, nil},
		"that stays busy":      {&fakeTargets{err: target.ErrBusy}, target.ErrBusy},
		"that does not answer": {&fakeTargets{busy: 1, err: io.EOF}, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, _ := testHandler(t, &fakeEngine{})
				h.targets = test.clusters
				started := time.Now()
				if _, _, err := h.planner.planTarget(t.Context(), newWidget(), nil, &Plan{}); !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
				if took := time.Since(started); took > targetPatience+time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// A plan asks the engine for what the reconcile after it asks for. That the engine does what it plans is in TestAPlanIsWhatHappens.
func TestAPlanAsksForWhatTheReconcileAsksFor(t *testing.T) {
	edit := func(o *operated) { o.obj.Generation, o.obj.Spec.Size = 3, 7 }
	annotate := func(annotation, value string) func(*operated) {
		return func(o *operated) { o.obj.Annotations = map[string]string{"test.corbel.run/" + annotation: value} }
	}
	one, blind := version{digest: "1"}, version{digest: "1", blind: true} // an annotation changes no object of the latter
	for name, test := range map[string]struct {
		change   func(*operated)
		next     version
		fresh    bool  // nothing was applied before
		revision int64 // 2 before
		to       int64 // the revision of a rollback
		retained int
		remote   bool
	}{
		"a new component": {fresh: true, change: func(*operated) {}, next: one, revision: 1},
		"at rest":         {change: func(*operated) {}, next: one, revision: 2},
		"an edit":         {change: edit, next: one, revision: 3},
		"another place, and other policies": {next: one, revision: 2, change: func(o *operated) {
			o.obj.Generation, o.obj.Spec.Namespace, o.obj.Spec.DeletePolicy = 3, "other", v1alpha1.DeletePolicyOrphan
			o.obj.Spec.AdditionalManagedTypes = []reconciler.TypeInfo{{Group: "batch", Kind: "CronJob"}}
			annotate(vocabulary.AnnotationAllowEmpty, "true")(o)
		}},
		"another cluster": {next: one, revision: 2, remote: true, change: func(o *operated) {
			o.local = fake.NewFakeClient(secretObject("far", map[string][]byte{"value": []byte("kubeconfig")}))
			o.obj.Generation, o.obj.Spec.KubeConfig, o.obj.Spec.ServiceAccountName = 3, &KubeConfigSpec{SecretKeyReference{Name: "far"}}, "deployer"
		}},
		"another generator that renders the same": {change: func(*operated) {}, next: version{digest: "2"}, revision: 2},
		"another generator":                       {change: func(*operated) {}, next: version{digest: "2", text: "other"}, revision: 3},
		"another generator, and a hook": {next: version{digest: "2"}, revision: 3, change: func(o *operated) {
			o.code.hooks[preReconcile] = hooksOf(PreviewSafe(noteHook("hook")))
		}},
		"a rollback": {change: annotate(vocabulary.AnnotationRollbackTo, "1"), next: one, revision: 3, to: 1, retained: 1},
		"the end of a rollback": {next: one, revision: 4, change: func(o *operated) {
			annotate(vocabulary.AnnotationRollbackTo, "1")(o)
			_, err := o.reconcile(one)
			check(t, err)
			o.obj.Annotations = nil
		}},
		"an approval": {next: blind, revision: 3, change: func(o *operated) {
			edit(o)
			o.settings.requireApproval = true
			if _, err := o.reconcile(blind); o.obj.Status.Approval == nil {
				t.Fatalf("no approval is asked for: %v", err)
			}
			annotate(vocabulary.AnnotationApprove, o.obj.Status.Approval.Hash)(o)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o, targets := operate(t, ReconcilerOptions{}), &fakeTargets{}
			targets.target.Engine, o.targets = o.engine, targets
			o.engine.outcome = reconciler.Outcome{Total: 1, Settled: 1, Inventory: v1alpha1.Inventory{Format: 1, Items: []v1alpha1.InventoryItem{
				{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a"}, {Version: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data"},
			}}}
			if !test.fresh {
				o.upTo(2)
			}
			test.change(o)
			o.engine.planned, targets.asked = nil, nil
			planned, plan := o.obj.DeepCopyObject().(*widget), &Plan{}
			check(t, o.planner.planApply(t.Context(), planned, test.next, plan))
			asked := o.engine.planned[0]
			request, err := o.reconcile(test.next)
			check(t, err)
			request.Record, request.Confirm = nil, nil
			if diff := cmp.Diff(request, asked); diff != "" {
				t.Errorf("the request (-applied +planned):\n%s", diff)
			}
			if (len(request.Protected) == 0) != test.remote {
				t.Errorf("protected are %v", request.Protected)
			}
			if diff := cmp.Diff(targets.asked[1:], targets.asked[:1]); diff != "" || plan.Remote != test.remote {
				t.Errorf("the target, which is remote: %t (-applied +planned):\n%s", plan.Remote, diff)
			}
			if plan.Revision != test.revision || o.obj.Status.Revision != test.revision || plan.RollbackTo != test.to || len(asked.Retain) != test.retained {
				t.Errorf("planned is revision %d, rolled back to %d, retained are %v; applied is %d", plan.Revision, plan.RollbackTo, asked.Retain, o.obj.Status.Revision)
			}

			o.obj.Status.Inventory.DeleteHooks = true
			obj := deletedWidget(o.obj.Status.Inventory)
			obj.Spec = o.obj.Spec
			check(t, o.planner.planDeletion(t.Context(), obj, &Plan{}))
			_, err = o.deletion.delete(t.Context(), obj, noCommit)
			check(t, err)
			deletion := o.engine.deleted[0]
			deletion.Record, deletion.Confirm = nil, nil
			if diff := cmp.Diff(deletion, o.engine.foreseen[0]); diff != "" || len(deletion.Objects) == 0 {
				t.Errorf("%d objects; the request for the deletion (-deleted +planned):\n%s", len(deletion.Objects), diff)
			}
		})
	}
}

func TestAPlanRunsOnlyHooksThatAreSafe(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	var ran []string
	hook := func(name string) HookFunc[*widget] {
		return func(context.Context, client.Client, *widget) error { ran = append(ran, name); return nil }
	}
	h.code.hooks[preReconcile] = hooksOf(PreviewSafe(hook("safe")), hook("unsafe"))
	h.code.hooks[postReconcile] = hooksOf(hook("late"))
	plan := &Plan{}
	if err := h.planner.planApply(t.Context(), newWidget(), manifests.GeneratorFunc(nothing), plan); err != nil || !slices.Equal(ran, []string{"safe"}) {
		t.Errorf("%v, hooks %q", err, ran)
	}
	if len(plan.Incomplete) != 1 || !strings.Contains(plan.Incomplete[0], "pre-reconcile hook 2 is not run") {
		t.Errorf("%q", plan.Incomplete)
	}
}

func TestAPlanGivesTheErrorOfTheReconcile(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	obj := withSpec(widgetSpec{PlacementSpec: PlacementSpec{Namespace: "Not_Legal"}})
	obj.Annotations = map[string]string{"test.corbel.run/rollout": "maybe", "test.corbel.run/require-approval": "maybe", "test.corbel.run/allow-empty": "maybe"}
	checkMistakes(t, h.planner.planApply(t.Context(), obj, manifests.GeneratorFunc(nothing), &Plan{}), `deployment namespace "Not_Legal"|"maybe" must be "pin"|`+
		`require-approval: "maybe" must be|allow-empty: "maybe" must be`)
}

func TestAPlanOfADeletionNamesWhatBlocksAllOfIt(t *testing.T) {
	engine := &fakeEngine{blockers: []report.Blocker{{Dependent: "CustomResourceDefinition foos.example.com", Message: "2 instances exist"}}}
	h, _ := testHandler(t, engine)
	plan, obj := &Plan{}, deletedWidget(someInventory, "example.com/foreign")
	obj.Spec.AdditionalManagedTypes = []reconciler.TypeInfo{{Group: "batch", Kind: "CronJob"}}
	check(t, h.planner.planDeletion(t.Context(), obj, plan))
	if asked := engine.asked[0]; len(asked.ManagedTypes) != 1 || !slices.Equal(asked.Protected, protectedKeys) || len(asked.Inventory.Items) == 0 {
		t.Errorf("the engine is asked for what blocks %+v", asked)
	}
	var blocked []string
	for _, change := range plan.Changes {
		if change.Class == report.ChangeBlocked && change.Key.Name == "main" {
			blocked = append(blocked, change.Message)
		}
	}
	if len(blocked) != 2 || !strings.Contains(blocked[0], "2 instances exist") || !strings.Contains(blocked[1], "example.com/foreign") {
		t.Errorf("%q", blocked)
	}
}
