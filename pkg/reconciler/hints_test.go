// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

func condition(kind, status string) map[string]any {
	return map[string]any{"type": kind, "status": status}
}

func TestAStatusHintSaysWhatTheStatusOfAnObjectMustHaveToBeReady(t *testing.T) {
	b := newBench(t)
	crd := definition("hinteds", "Hinted")
	b.until("the type", func() bool {
		outcome, err := b.apply(crd)
		return err == nil && outcome.Done()
	})
	const current = "current"
	for hint, statuses := range map[string][]map[string]any{
		"has-observed-generation": {{"phase": "Busy"}, {"observedGeneration": int64(0)}, {"observedGeneration": current}},
		"has-ready-condition":     {{"phase": "Busy"}, {"conditions": []any{condition("Ready", "False")}}, {"conditions": []any{condition("Ready", "True")}}},
		"conditions=A;B": {
			{"conditions": []any{condition("A", "True")}},
			{"conditions": []any{condition("A", "True"), condition("B", "Unknown")}},
			{"conditions": []any{condition("A", "True"), condition("B", "True")}},
		},
	} {
		t.Run(hint, func(t *testing.T) {
			name := strings.ToLower(strings.NewReplacer("=", "-", ";", "-").Replace(hint))
			object := placed(annotated(instance("Hinted", name), "status-hint", hint), b.namespace)
			if _, err := b.apply(crd, object); err != nil {
				t.Fatal(err)
			}
			for i, status := range statuses {
				live := object.DeepCopy()
				if err := b.Get(t.Context(), client.ObjectKeyFromObject(object), live); err != nil {
					t.Fatal(err)
				}
				if status["observedGeneration"] == current {
					// Without a status subresource this write is a new generation, too.
					status["observedGeneration"] = live.GetGeneration() + 1
				}
				live.Object["status"] = status
				if err := b.Update(t.Context(), live); err != nil {
					t.Fatal(err)
				}
				outcome, err := b.apply(crd, object)
				if ready, want := outcome.Done(), i == len(statuses)-1; err != nil || ready != want {
					t.Errorf("with status %v: ready %t, want %t; %v, waiting for %v", status, ready, want, err, outcome.Waiting)
				}
			}
		})
	}
}

func TestAnObjectIsReadyWhenItsExpressionSaysSo(t *testing.T) {
	b := newBench(t)
	outcome := b.mustWait(gate("a"))
	if got := waiting(outcome, "a"); !strings.HasPrefix(got, "NotReady") {
		t.Errorf("it waits for %q", got)
	}
	b.open("a")
	b.mustApply(gate("a"))
	if _, err := b.apply(config("a", "1", "ready-when", "self.data.")); err == nil || !strings.Contains(err.Error(), "ready-when") {
		t.Errorf("an expression that cannot be compiled: %v", err)
	}
}

func TestATypeThatAppearsAtRunTimeIsWaitedForIfThePatternOfAnAdditionalTypeCoversIt(t *testing.T) {
	b := newBench(t)
	crd := definition("runtimes", "Runtime")
	late := annotated(instance("Runtime", "late"), "ready-when", "true")
	apply := func(types ...v1alpha1.TypeInfo) (reconciler.Outcome, error) {
		outcome, err := b.engine.Apply(t.Context(), reconciler.ApplyRequest{
			Owner: b.owner(), Namespace: b.namespace, Objects: []client.Object{late}, Inventory: b.inventory, Record: b.record, ManagedTypes: types,
		})
		b.inventory = outcome.Inventory
		return outcome, err
	}
	_, err := apply()
	if _, invalid := errors.AsType[*reconciler.InvalidError](err); !invalid || !strings.Contains(err.Error(), "Runtime") {
		t.Fatalf("got %v, want an InvalidError that names the type", err)
	}
	pattern := v1alpha1.TypeInfo{Group: "*.corbel.run", Kind: "*"}
	outcome, err := apply(pattern)
	if err != nil || len(outcome.Waiting) != 1 || outcome.Waiting[0].Reason != reconciler.WaitType {
		t.Fatalf("%v, waiting for %v, want to wait for the type", err, outcome.Waiting)
	}
	b.mustCreate(crd)
	t.Cleanup(func() { _ = b.Delete(context.WithoutCancel(t.Context()), crd) })
	b.until("the instance", func() bool {
		outcome, err := apply(pattern)
		if err != nil {
			t.Fatal(err)
		}
		return outcome.Done()
	})
}

func TestObjectsInListsAreObjectsOfTheComponent(t *testing.T) {
	b := newBench(t)
	b.mustApply(
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{config("a", "1").Object}}},
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMapList", "items": []any{config("b", "1").Object}}},
	)
	for _, name := range []string{"a", "b"} {
		if live := b.get(name); live == nil || live.Labels[engineName+"/owner-id"] == "" {
			t.Errorf("%s is %v", name, live)
		}
	}
}

func TestATypeWithForeignInstancesIsNotRecreated(t *testing.T) {
	b := newBench(t)
	crd := func(version string) client.Object {
		object := annotated(definition("anews", "Anew"), "update-policy", "recreate")
		object.SetLabels(map[string]string{"version": version})
		return object
	}
	b.until("the type", func() bool {
		outcome, err := b.apply(crd("1"))
		return err == nil && outcome.Done()
	})
	theirs := placed(instance("Anew", "foreign"), b.namespace)
	b.until("the foreign instance", func() bool { return b.Create(t.Context(), theirs.DeepCopy()) == nil })
	b.until("the recreation to be blocked", func() bool {
		outcome, err := b.apply(crd("2"))
		if err != nil {
			t.Fatal(err)
		}
		return len(outcome.Waiting) == 1 && outcome.Waiting[0].Reason == reconciler.WaitBlocked && strings.Contains(outcome.Waiting[0].Message, "foreign")
	})
	if !b.exists(theirs) {
		t.Error("the foreign instance was lost")
	}
}

func TestAnInvalidPolicyIsAnErrorThatListsTheAllowedValues(t *testing.T) {
	b := newBench(t)
	values := map[string]string{
		"adoption-policy": "if-unowned", "reconcile-policy": "once", "update-policy": "ssa-merge", "delete-policy": "orphan-on-apply",
	}
	for annotation, allowed := range values {
		_, err := b.apply(config("a", "1", annotation, "nonsense"))
		if err == nil || !strings.Contains(err.Error(), annotation) || !strings.Contains(err.Error(), allowed) {
			t.Errorf("%s: got %v, want the annotation and what it may be, such as %s", annotation, err, allowed)
		}
	}
	if b.get("a") != nil {
		t.Error("something was written")
	}
}
