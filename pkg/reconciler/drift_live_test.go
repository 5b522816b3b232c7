// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
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

// expectRepair expects one write, and a note that says who it was.
func (b *bench) expectRepair(said string, objects ...client.Object) {
	b.t.Helper()
	outcome := b.mustApply(objects...)
	if len(outcome.Steps) != 1 {
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

func (b *bench) expectRest(objects ...client.Object) {
	b.t.Helper()
	if outcome := b.mustApply(objects...); len(outcome.Steps)+len(outcome.Drifted) > 0 {
		b.t.Errorf("steps %v, drifted %v", outcome.Steps, outcome.Drifted)
	}
}

func TestADriftedFieldIsRepairedByOneWriteThatSaysWhoChangedIt(t *testing.T) {
	underEachUpdatePolicy(t, func(t *testing.T, b *bench, policy string) {
		object := config("a", "1", "update-policy", policy)
		b.mustApply(object)
		b.edit("a", "theirs", "kubectl-edit")
		b.expectRepair("drift repaired: kubectl-edit changed data.value at 20", object)
		b.expectRest(object)
		if err := b.Delete(t.Context(), b.get("a")); err != nil {
			t.Fatal(err)
		}
		b.expectRepair("drift repaired: somebody deleted it", object)
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

func TestAnObjectWhoseManagedFieldsWereClearedIsRepairedAllTheSame(t *testing.T) {
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
		b.expectRepair("somebody changed data.value", object)
		b.expectRest(object)
	})
}

func TestAFieldOfOursThatAdmissionAltersIsNoDriftUntilSomebodyChangesIt(t *testing.T) {
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

func workload(policy, image string, replicas any) *unstructured.Unstructured {
	spec := map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"app": "a"}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": "a"}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": image}}},
		},
	}
	if replicas != nil {
		spec["replicas"] = replicas
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec,
		"metadata": map[string]any{"name": "a", "annotations": map[string]any{engineName + "/update-policy": policy}},
	}}
}

// deployment is the Deployment of the bench, which nobody makes ready.
func (b *bench) deployment() *appsv1.Deployment {
	b.t.Helper()
	live := &appsv1.Deployment{}
	if err := b.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "a"}, live); err != nil {
		b.t.Fatal(err)
	}
	return live
}

func (b *bench) scale(replicas int32) {
	b.t.Helper()
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "a"}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	if err := b.SubResource("scale").Update(b.t.Context(), b.deployment(), client.WithSubResourceBody(scale), client.FieldOwner("autoscaler")); err != nil {
		b.t.Fatal(err)
	}
}

func TestWhoScalesThroughTheSubresourceHasTheNumberOfReplicas(t *testing.T) {
	for name, replicas := range map[string]any{"the manifest has no replicas": nil, "the manifest has other replicas": int64(3)} {
		t.Run(name, func(t *testing.T) {
			underEachUpdatePolicy(t, func(t *testing.T, b *bench, policy string) {
				expect := func(what string, writes int, object client.Object) {
					t.Helper()
					outcome, err := b.apply(object)
					steps := 0
					for _, n := range outcome.Steps {
						steps += n
					}
					if err != nil || steps != writes || len(outcome.Drifted) > 0 {
						t.Errorf("%s: %v, steps %v, drifted %v", what, err, outcome.Steps, outcome.Drifted)
					}
					if got := *b.deployment().Spec.Replicas; what != "install" && got != 5 {
						t.Errorf("%s: %d replicas", what, got)
					}
				}
				expect("install", 1, workload(policy, "one", replicas))
				b.scale(5)
				expect("scaled", 0, workload(policy, "one", replicas))
				b.scale(7)
				b.scale(5)
				expect("scaled again", 0, workload(policy, "one", replicas))
				expect("another image", 1, workload(policy, "two", replicas))
				live := b.deployment()
				live.Spec.Template.Spec.Containers[0].Image = "theirs"
				if err := b.Update(t.Context(), live, client.FieldOwner("kubectl-edit")); err != nil {
					t.Fatal(err)
				}
				expect("the image drifted", 1, workload(policy, "two", replicas))
				if image := b.deployment().Spec.Template.Spec.Containers[0].Image; image != "two" {
					t.Errorf("the image is %s", image)
				}
				expect("at rest", 0, workload(policy, "two", replicas))
			})
		})
	}
}

func TestUnderReportNothingIsWrittenButOurMarksAndAChangedManifest(t *testing.T) {
	underEachUpdatePolicy(t, func(t *testing.T, b *bench, policy string) {
		options := []string{"update-policy", policy, "drift-policy", "report"}
		a, gone := config("a", "1", options...), config("b", "1", options...)
		b.mustApply(a, gone)
		b.edit("a", "theirs", "kubectl-edit")
		if err := b.Delete(t.Context(), b.get("b")); err != nil {
			t.Fatal(err)
		}
		for range 2 { // it is told as long as it lasts
			outcome := b.mustApply(a, gone)
			if len(outcome.Steps) > 0 || len(outcome.Drifted) != 2 {
				t.Fatalf("steps %v, drifted %v", outcome.Steps, outcome.Drifted)
			}
			if first := outcome.Drifted[0]; first.Manager != "kubectl-edit" || first.At.IsZero() || strings.Join(first.Fields, " ") != "data.value" {
				t.Errorf("it says: %s", first)
			}
			if !outcome.Drifted[1].Missing {
				t.Errorf("it says: %s", outcome.Drifted[1])
			}
		}
		b.change("a", func(c *corev1.ConfigMap) { c.Labels, c.Annotations = nil, nil })
		outcome := b.mustApply(a, gone)
		if outcome.Steps["mark"] != 1 || len(outcome.Steps) != 1 {
			t.Errorf("steps %v, want our marks put back", outcome.Steps)
		}
		if live := b.get("a"); live.Data["value"] != "theirs" || live.Labels[engineName+"/owner-id"] == "" || live.Annotations[engineName+"/owner"] == "" {
			t.Errorf("data %v, labels %v, annotations %v", live.Data, live.Labels, live.Annotations)
		}
		if b.get("b") != nil {
			t.Error("the deleted object was created again")
		}
		a, gone = config("a", "2", options...), config("b", "2", options...)
		b.mustApply(a, gone)
		if b.get("a").Data["value"] != "2" || b.get("b") == nil {
			t.Error("the changed manifests were not written")
		}
		b.expectRest(a, gone)
		if outcome, err := b.delete(); err != nil || !outcome.Done() || b.get("a") != nil {
			t.Errorf("delete: %v, waiting for %v", err, outcome.Waiting)
		}
	})
}

func TestUnderIgnoreDriftIsNeitherRepairedNorTold(t *testing.T) {
	b := newBench(t)
	object := config("a", "1", "drift-policy", "Ignore")
	b.mustApply(object)
	b.edit("a", "theirs", "kubectl-edit")
	b.expectRest(object)
	if err := b.Delete(t.Context(), b.get("a")); err != nil {
		t.Fatal(err)
	}
	if b.expectRest(object); b.get("a") != nil {
		t.Error("the deleted object was created again")
	}
}

func TestPrecedenceOfTheDriftPolicy(t *testing.T) {
	report, ignore := reconciler.DriftPolicyReport, reconciler.DriftPolicyIgnore
	for name, tt := range map[string]struct {
		options    *reconciler.DriftPolicy
		request    reconciler.DriftPolicy
		annotation string
		value      string
		told       int
	}{
		"repair by default":                      {value: "1"},
		"the options":                            {options: &report, value: "theirs", told: 1},
		"the component before the options":       {options: &report, request: ignore, value: "theirs"},
		"the annotation before the component":    {options: &ignore, request: ignore, annotation: "report", value: "theirs", told: 1},
		"the annotation may ask for the default": {options: &ignore, request: report, annotation: "Repair", value: "1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.engine = newEngine(t, reconciler.ReconcilerOptions{DriftPolicy: tt.options})
			object := config("a", "1")
			if tt.annotation != "" {
				object = config("a", "1", "drift-policy", tt.annotation)
			}
			apply := func() reconciler.Outcome {
				t.Helper()
				outcome, err := b.engine.Apply(t.Context(), reconciler.ApplyRequest{
					Owner: b.owner(), Namespace: b.namespace, Objects: []client.Object{object}, Inventory: b.inventory, Record: b.record,
					Policies: reconciler.Policies{Drift: tt.request},
				})
				if b.inventory = outcome.Inventory; err != nil {
					t.Fatal(err)
				}
				return outcome
			}
			apply()
			b.edit("a", "theirs", "kubectl-edit")
			outcome := apply()
			if got := b.get("a").Data["value"]; got != tt.value || len(outcome.Drifted) != tt.told {
				t.Errorf("value %q, told %v", got, outcome.Drifted)
			}
		})
	}
}

func TestAFightIsFoughtLessAndLessOftenAndItsOpponentIsNamed(t *testing.T) {
	b := newBench(t)
	now := time.Now()
	b.engine = newEngine(t, reconciler.ReconcilerOptions{Now: func() time.Time { return now }})
	object := config("a", "1")
	b.mustApply(object)
	start, writes, warned := now, 0, false
	for now.Sub(start) < 10*time.Minute {
		// He writes every 100 ms. As long as nobody undoes it, that changes nothing.
		now = now.Add(100 * time.Millisecond)
		b.edit("a", "theirs", "their-operator")
		outcome, err := b.apply(object)
		if err != nil {
			t.Fatal(err)
		}
		writes += outcome.Steps["replace"]
		for _, note := range outcome.Notes {
			warned = warned || note.Warning == "FieldConflict" && strings.Contains(note.Message, "their-operator changes data.value")
		}
		if len(outcome.Waiting) == 0 {
			continue
		}
		wait := outcome.Waiting[0]
		if wait.Reason != reconciler.WaitConflict || !strings.Contains(wait.Message, "their-operator changes data.value") || outcome.Settled != 0 {
			t.Fatalf("it waits for %+v", wait)
		}
		if now.Before(wait.Until) {
			now = wait.Until.Add(-100 * time.Millisecond)
		}
	}
	if writes < 4 || writes > 12 || !warned {
		t.Errorf("%d writes, warned: %t", writes, warned)
	}
}

// eventuallyTrue polls until the condition holds.
func eventuallyTrue(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}
