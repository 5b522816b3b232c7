// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

// underEachUpdatePolicy runs a test for every way of writing objects.
func underEachUpdatePolicy(t *testing.T, test func(t *testing.T, b *bench, policy string)) {
	for _, policy := range []string{"replace", "ssa-merge", "ssa-override"} {
		t.Run(policy, func(t *testing.T) { test(t, newBench(t), policy) })
	}
}

// edit changes the value of a config map as a manager.
func (b *bench) edit(name, value, manager string) {
	b.t.Helper()
	live := b.get(name)
	live.Data["value"] = value
	if err := b.Update(b.t.Context(), live, client.FieldOwner(manager)); err != nil {
		b.t.Fatal(err)
	}
}

// expectRepair expects one write, and a note that names the client.
func (b *bench) expectRepair(said string, objects ...client.Object) {
	b.t.Helper()
	outcome := b.mustApply(objects...)
	if writes(outcome) != 1 {
		b.t.Errorf("steps %v, want one write", outcome.Steps)
	}
	var notes []string
	for _, note := range outcome.Notes {
		notes = append(notes, note.Message)
	}
	if all := strings.Join(notes, "\n"); !strings.Contains(all, said) {
		b.t.Errorf("notes %q, want one with %q", all, said)
	}
	if got := b.get("a").Data["value"]; got != "1" {
		b.t.Errorf("value %q after the repair", got)
	}
}

// writes counts the steps of an outcome.
func writes(outcome reconciler.Outcome) (n int) {
	for _, steps := range outcome.Steps {
		n += steps
	}
	return n
}

func (b *bench) expectRest(objects ...client.Object) {
	b.t.Helper()
	if outcome := b.mustApply(objects...); len(outcome.Steps)+len(outcome.Drifted) > 0 {
		b.t.Errorf("steps %v, drifted %v", outcome.Steps, outcome.Drifted)
	}
}

func TestADriftedFieldIsRepairedByOneWriteThatNamesTheClient(t *testing.T) {
	underEachUpdatePolicy(t, func(t *testing.T, b *bench, policy string) {
		object := config("a", "1", "update-policy", policy)
		b.mustApply(object)
		b.edit("a", "theirs", "kubectl-edit")
		b.expectRepair("drift repaired: kubectl-edit changed data.value at 20", object)
		b.expectRest(object)
		if err := b.Delete(t.Context(), b.get("a")); err != nil {
			t.Fatal(err)
		}
		b.expectRepair("drift repaired: another client deleted it", object)
	})
}

func TestAFieldThatWasChangedAndChangedBackIsNoDrift(t *testing.T) {
	underEachUpdatePolicy(t, func(t *testing.T, b *bench, policy string) {
		object := config("a", "1", "update-policy", policy)
		b.mustApply(object)
		b.edit("a", "theirs", "kubectl-edit")
		b.edit("a", "1", "kubectl-edit")
		b.expectRest(object)
		b.edit("a", "theirs", "kubectl-edit") // it is theirs by now, and drifts all the same
		b.expectRepair("kubectl-edit changed data.value", object)
	})
}

func TestAnObjectThatWasAdoptedWithEqualValuesIsRepairedWhenItsFormerManagerChangesIt(t *testing.T) {
	underEachUpdatePolicy(t, func(t *testing.T, b *bench, policy string) {
		theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "a"}, Data: map[string]string{"value": "1"}}
		if err := b.Create(t.Context(), theirs, client.FieldOwner("their-operator")); err != nil {
			t.Fatal(err)
		}
		object := config("a", "1", "update-policy", policy)
		b.mustApply(object)
		b.edit("a", "theirs", "their-operator")
		b.expectRepair("their-operator changed data.value", object)
		b.expectRest(object)
	})
}

func TestAnObjectWithClearedManagedFieldsIsRepairedAllTheSame(t *testing.T) {
	underEachUpdatePolicy(t, func(t *testing.T, b *bench, policy string) {
		object := config("a", "1", "update-policy", policy)
		b.mustApply(object)
		clear := func() {
			t.Helper()
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`))
			if err := b.Patch(t.Context(), b.get("a"), patch); err != nil {
				t.Fatal(err)
			}
		}
		clear()
		b.expectRest(object)
		b.edit("a", "theirs", "kubectl-edit")
		clear()
		if fields := b.get("a").ManagedFields; len(fields) > 0 {
			t.Fatalf("the managed fields are %v", fields)
		}
		b.expectRepair("another client changed data.value", object)
		b.expectRest(object)
	})
}

func TestAFieldOfOursThatAdmissionAltersIsNoDriftUntilAnotherClientChangesIt(t *testing.T) {
	underEachUpdatePolicy(t, func(t *testing.T, b *bench, policy string) {
		b.alter("suffix", `Object{data: {"altered": object.data.value + "-altered"}}`)
		eventuallyTrue(t, "the admission policy is active", func() bool {
			probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "probe"}, Data: map[string]string{"value": "1"}}
			return b.Create(t.Context(), probe, client.DryRunAll) == nil && probe.Data["altered"] != ""
		})
		object := config("a", "1", "update-policy", policy)
		object.Object["data"].(map[string]any)["altered"] = "as the manifest says"
		if b.mustApply(object); b.get("a").Data["altered"] != "1-altered" {
			t.Fatalf("data %v", b.get("a").Data)
		}
		b.expectRest(object)
		b.edit("a", "theirs", "kubectl-edit")
		b.expectRepair("kubectl-edit changed data.", object)
		b.expectRest(object)
	})
}

// alter lets the server change the config maps in the namespace of the bench.
func (b *bench) alter(name, expression string) {
	b.t.Helper()
	name += "-" + b.namespace
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"reinvocationPolicy": "Never",
			"failurePolicy":      "Fail",
			"matchConstraints": map[string]any{
				"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": b.namespace}},
				"resourceRules": []any{map[string]any{
					"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE", "UPDATE"}, "resources": []any{"configmaps"},
				}},
			},
			"mutations": []any{map[string]any{
				"patchType":          "ApplyConfiguration",
				"applyConfiguration": map[string]any{"expression": expression},
			}},
		},
	}}
	binding := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"policyName": name},
	}}
	for _, object := range []*unstructured.Unstructured{policy, binding} {
		if err := b.Create(b.t.Context(), object); err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(func() { _ = b.Delete(b.t.Context(), object) })
	}
}

// eventuallyTrue polls until the condition holds.
func eventuallyTrue(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}
