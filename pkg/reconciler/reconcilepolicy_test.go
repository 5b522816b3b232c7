// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

// applyAs applies for a state of the component.
func (b *bench) applyAs(componentDigest string, objects ...client.Object) reconciler.Outcome {
	b.t.Helper()
	outcome, err := b.engine.Apply(b.t.Context(), reconciler.ApplyRequest{
		Owner: b.owner(), Namespace: b.namespace, Objects: objects, Inventory: b.inventory, Record: b.record, ComponentDigest: componentDigest,
	})
	if err != nil || !outcome.Done() {
		b.t.Fatalf("apply: %v, waiting for %v", err, outcome.Waiting)
	}
	b.inventory = outcome.Inventory
	return outcome
}

// change changes a ConfigMap by hand.
func (b *bench) change(name string, change func(*corev1.ConfigMap)) {
	b.t.Helper()
	live := b.get(name)
	change(live)
	if err := b.Update(b.t.Context(), live); err != nil {
		b.t.Fatal(err)
	}
}

func spellings(kebab, camel string) map[string]string {
	return map[string]string{"in kebab-case": kebab, "in CamelCase": camel}
}

func TestAnObjectIsWrittenOnlyWhenItChangesUnderOnObjectChange(t *testing.T) {
	for name, policy := range spellings("on-object-change", "OnObjectChange") {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.applyAs("1", config("a", "1", "reconcile-policy", policy))
			if outcome := b.applyAs("2", config("a", "1", "reconcile-policy", policy)); len(outcome.Steps) > 0 {
				t.Errorf("steps %v although only the component changed", outcome.Steps)
			}
			if outcome := b.applyAs("2", config("a", "2", "reconcile-policy", policy)); outcome.Steps["replace"] != 1 {
				t.Errorf("steps %v, want one replace", outcome.Steps)
			}
		})
	}
}

func TestAnObjectIsWrittenAlsoWhenTheComponentChangesUnderOnObjectOrComponentChange(t *testing.T) {
	for name, policy := range spellings("on-object-or-component-change", "OnObjectOrComponentChange") {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			object := config("a", "1", "reconcile-policy", policy)
			b.applyAs("1", object, config("other", "1"))
			if outcome := b.applyAs("2", object, config("other", "1")); outcome.Steps["replace"] != 1 {
				t.Errorf("steps %v, want one replace", outcome.Steps)
			}
			if outcome := b.applyAs("2", object, config("other", "1")); len(outcome.Steps) > 0 {
				t.Errorf("steps %v without a change", outcome.Steps)
			}
		})
	}
}

func TestAnObjectUnderOnceIsNeverTouchedNorRecreated(t *testing.T) {
	for name, policy := range spellings("once", "Once") {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.applyAs("1", config("a", "1", "reconcile-policy", policy))
			b.applyAs("2", config("a", "2", "reconcile-policy", policy))
			b.change("a", func(c *corev1.ConfigMap) { c.Data["value"] = "by hand" })
			b.applyAs("3", config("a", "3", "reconcile-policy", policy))
			if got := b.get("a").Data["value"]; got != "by hand" {
				t.Errorf("value %q, want what was written by hand", got)
			}
			if err := b.Delete(t.Context(), b.get("a")); err != nil {
				t.Fatal(err)
			}
			if outcome := b.applyAs("4", config("a", "4", "reconcile-policy", policy)); len(outcome.Steps) > 0 || b.get("a") != nil {
				t.Errorf("steps %v; the object was created again: %t", outcome.Steps, b.get("a") != nil)
			}
		})
	}
}

func TestAnObjectUnderOnceIsDeletedWithItsComponent(t *testing.T) {
	b := newBench(t)
	b.applyAs("1", config("a", "1", "reconcile-policy", "once"))
	if outcome, err := b.delete(); err != nil || !outcome.Done() || b.get("a") != nil {
		t.Errorf("delete: %v, waiting for %v", err, outcome.Waiting)
	}
}

func TestAnObjectUnderOncePerManifestIsAppliedAgainOnlyWhenItsManifestChanges(t *testing.T) {
	for name, policy := range spellings("once-per-manifest", "OncePerManifest") {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.applyAs("1", config("a", "1", "reconcile-policy", policy))
			b.change("a", func(c *corev1.ConfigMap) { c.Data["value"] = "by hand" })
			if outcome := b.applyAs("2", config("a", "1", "reconcile-policy", policy)); len(outcome.Steps) > 0 || b.get("a").Data["value"] != "by hand" {
				t.Errorf("steps %v although the manifest is the same", outcome.Steps)
			}
			if err := b.Delete(t.Context(), b.get("a")); err != nil {
				t.Fatal(err)
			}
			if outcome := b.applyAs("3", config("a", "1", "reconcile-policy", policy)); len(outcome.Steps) > 0 || b.get("a") != nil {
				t.Errorf("steps %v; the object was created again: %t", outcome.Steps, b.get("a") != nil)
			}
			b.applyAs("4", config("a", "2", "reconcile-policy", policy))
			if live := b.get("a"); live == nil || live.Data["value"] != "2" {
				t.Errorf("got %v, want the new manifest", live)
			}
			b.applyAs("5", config("a", "3", "reconcile-policy", policy, "update-policy", "recreate"))
			if live := b.get("a"); live == nil || live.Data["value"] != "3" {
				t.Errorf("got %v, want the newest manifest", live)
			}
		})
	}
}
