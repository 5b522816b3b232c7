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

	"sigs.k8s.io/controller-runtime/pkg/client"

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
				if _, _, err := h.planner.planTarget(t.Context(), newWidget(), &Plan{}); !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
				if took := time.Since(started); took > targetPatience+time.Second {
					t.Errorf("it took %s", took)
				}
			})
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
	checkMistakes(t, h.planner.planApply(t.Context(), obj, manifests.GeneratorFunc(nothing), &Plan{}), `deployment namespace "Not_Legal"`)
}

func TestAPlanOfADeletionNamesWhatBlocksAllOfIt(t *testing.T) {
	engine := &fakeEngine{blockers: []report.Blocker{{Dependent: "CustomResourceDefinition foos.example.com", Message: "2 instances exist"}}}
	h, _ := testHandler(t, engine)
	plan, obj := &Plan{}, deletedWidget(someInventory, "example.com/foreign")
	obj.Spec.AdditionalManagedTypes = []reconciler.TypeInfo{{Group: "batch", Kind: "CronJob"}}
	check(t, h.planner.planDeletion(t.Context(), obj, plan))
	if asked := engine.asked[0]; len(asked.ManagedTypes) != 1 || len(asked.Protected) != 3 || len(asked.Inventory.Items) == 0 {
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
