// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// plan returns a plan, and fails if anything was written for it.
func (b *bed) plan(request component.PlanRequest[*widget.Widget]) component.Plan {
	b.Helper()
	plan, err := b.tryPlan(request)
	b.check(err)
	return plan
}

func (b *bed) tryPlan(request component.PlanRequest[*widget.Widget]) (component.Plan, error) {
	b.Helper()
	if request.Key.Name == "" {
		request.Key = b.key("main")
	}
	from := len(b.events())
	plan, err := b.reconciler.Plan(b.Context(), request)
	for _, e := range b.events()[from:] {
		reads := e.Verb == "get" || e.Verb == "list" || e.Verb == "watch"
		late := e.Resource == "events" // it may be one of the reconcile before, because events are sent in the background
		if e.User == b.user && !reads && !late && !isDryRun(e) && !strings.Contains(string(e.Sent), "digest-key") {
			b.Errorf("the plan wrote: %s %s", e.Verb, e.URI)
		}
	}
	return plan, err
}

// changes returns the changes of a plan as "batch class kind name: paths".
func changes(plan component.Plan) []string {
	var lines []string
	for _, c := range plan.Changes {
		line := fmt.Sprintf("%d %s %s %s", c.Batch, c.Class, c.Key.Kind, c.Key.Name)
		for _, field := range c.Fields {
			line += fmt.Sprintf(" %s %s->%s", field.Path, field.Old, field.New)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestAPlanSaysWhatAReconcileWouldDo(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	unsaved := &widget.Widget{ObjectMeta: b.object("main"), Spec: widget.Spec{Values: map[string]string{"a": "1"}}}
	if plan := b.plan(component.PlanRequest[*widget.Widget]{Edited: unsaved}); plan.Total("Create") != 1 {
		t.Errorf("a component that is not stored: %v", changes(plan))
	}
	if _, err := b.tryPlan(component.PlanRequest[*widget.Widget]{}); err == nil || !strings.Contains(err.Error(), "read Widget "+b.namespace+"/main") {
		t.Errorf("%v", err)
	}
	b.create(widget.Spec{Values: map[string]string{"a": "1", "b": "1"}})
	plan := b.plan(component.PlanRequest[*widget.Widget]{})
	if diff := cmp.Diff([]string{"1 Create ConfigMap a", "1 Create ConfigMap b"}, changes(plan)); diff != "" || plan.Revision != 1 {
		t.Errorf("installation, revision %d (-want +got):\n%s", plan.Revision, diff)
	}
	b.until(v1alpha1.StateReady)
	if plan := b.plan(component.PlanRequest[*widget.Widget]{}); len(plan.Changes) > 0 || plan.Revision != 1 {
		t.Errorf("at rest: %v", changes(plan))
	}

	edited := b.get()
	edited.Spec.Values = map[string]string{"a": "2", "c": "1"}
	plan = b.plan(component.PlanRequest[*widget.Widget]{Edited: edited})
	want := []string{"1 Create ConfigMap c", "1 Update ConfigMap a data.value 1->2", "2 Delete ConfigMap b"}
	got := changes(plan)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || plan.Revision != 2 || plan.Hash == "" {
		t.Errorf("an edit, revision %d, hash %q (-want +got):\n%s", plan.Revision, plan.Hash, diff)
	}
	if again := b.plan(component.PlanRequest[*widget.Widget]{Edited: edited}); again.Hash != plan.Hash {
		t.Error("the same edit has another hash")
	}
	if edited.Spec.Values["a"] = "3"; b.plan(component.PlanRequest[*widget.Widget]{Edited: edited}).Hash == plan.Hash {
		t.Error("another edit has the same hash")
	}
	if encoded, err := json.Marshal(plan); err != nil || !strings.Contains(string(encoded), `"version":"corbel.run/plan/v1"`) {
		t.Errorf("%v: %s", err, encoded)
	}

	plan = b.plan(component.PlanRequest[*widget.Widget]{Delete: true})
	if diff := cmp.Diff([]string{"1 Delete ConfigMap a", "1 Delete ConfigMap b"}, changes(plan)); diff != "" {
		t.Errorf("deletion (-want +got):\n%s", diff)
	}
	next := manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
		if !manifests.FromContext(ctx).Preview {
			t.Error("the generator does not see that it is a preview")
		}
		objects, err := configMaps(ctx, namespace, name, parameters)
		return append(objects, configMap("new", nil)), err
	})
	plan = b.plan(component.PlanRequest[*widget.Widget]{Generator: next})
	if diff := cmp.Diff([]string{"1 Create ConfigMap new"}, changes(plan)); diff != "" {
		t.Errorf("another operator (-want +got):\n%s", diff)
	}
	planned := 0
	b.check(b.reconciler.PlanAll(t.Context(), next, 2, func(key client.ObjectKey, plan component.Plan, err error) {
		if key == b.key("main") {
			planned++
			b.check(err)
			if len(plan.Changes) != 1 {
				t.Errorf("in a plan of all: %v", changes(plan))
			}
		}
	}))
	if planned != 1 {
		t.Errorf("the component was planned %d times", planned)
	}
}
