// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

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
