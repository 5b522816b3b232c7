// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/check"
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
	check.NoError(b.t, b.Update(b.t.Context(), live, client.FieldOwner(manager)))
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
	check.Contains(b.t, strings.Join(notes, "\n"), said)
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
	for name, tc := range map[string]struct {
		there    bool   // another client has made the object, with the values of the manifest
		restored bool   // the client has changed the field before, and changed it back
		cleared  bool   // the managed fields are cleared
		by, said string // the client, and what is said of it
	}{
		"edited":                   {by: "kubectl-edit", said: "drift repaired: kubectl-edit changed data.value at 20"},
		"changed and changed back": {restored: true, by: "kubectl-edit", said: "kubectl-edit changed data.value"}, // it is theirs by then
		"adopted as it was":        {there: true, by: "their-operator", said: "their-operator changed data.value"},
		"without managed fields":   {cleared: true, by: "kubectl-edit", said: "another client changed data.value"},
	} {
		t.Run(name, func(t *testing.T) {
			underEachUpdatePolicy(t, func(t *testing.T, b *bench, policy string) {
				if tc.there {
					theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "a"}, Data: map[string]string{"value": "1"}}
					check.NoError(t, b.Create(t.Context(), theirs, client.FieldOwner(tc.by)))
				}
				clear := func() {
					t.Helper()
					if !tc.cleared {
						return
					}
					check.NoError(t, b.Patch(t.Context(), b.get("a"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`))))
					if fields := b.get("a").ManagedFields; len(fields) > 0 {
						t.Fatalf("the managed fields are %v", fields)
					}
				}
				object := config("a", "1", "update-policy", policy)
				b.mustApply(object)
				clear()
				if tc.restored {
					b.edit("a", "theirs", tc.by)
					b.edit("a", "1", tc.by)
				}
				b.expectRest(object)
				b.edit("a", "theirs", tc.by)
				clear()
				b.expectRepair(tc.said, object)
				b.expectRest(object)
				check.NoError(t, b.Delete(t.Context(), b.get("a")))
				b.expectRepair("drift repaired: another client deleted it", object)
			})
		})
	}
}

func TestAFieldOfOursThatAdmissionAltersIsNoDriftUntilAnotherClientChangesIt(t *testing.T) {
	underEachUpdatePolicy(t, func(t *testing.T, b *bench, policy string) {
		b.alter("suffix", `Object{data: {"altered": object.data.value + "-altered"}}`)
		b.until("the admission policy to be active", func() bool {
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
		check.NoError(b.t, b.Create(b.t.Context(), object))
		b.t.Cleanup(func() { _ = b.Delete(b.t.Context(), object) })
	}
}

func workload(policy, image string, replicas any) *unstructured.Unstructured {
	object := plannedDeployment("a", image, "update-policy", policy)
	spec := object.Object["spec"].(map[string]any)
	if spec["replicas"] = replicas; replicas == nil {
		delete(spec, "replicas")
	}
	return object
}

// deployment is the Deployment of the bench, which never becomes ready.
func (b *bench) deployment() *appsv1.Deployment {
	b.t.Helper()
	live := &appsv1.Deployment{}
	check.NoError(b.t, b.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "a"}, live))
	return live
}

func (b *bench) scale(replicas int32, by ...string) {
	b.t.Helper()
	manager := append(by, "other-client")[0]
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "a"}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	check.NoError(b.t, b.SubResource("scale").Update(b.t.Context(), b.deployment(), client.WithSubResourceBody(scale), client.FieldOwner(manager)))
}

func TestReplicasThatWereSetThroughTheSubresourceScaleStay(t *testing.T) {
	for name, replicas := range map[string]any{"the manifest has no replicas": nil, "the manifest has other replicas": int64(3)} {
		t.Run(name, func(t *testing.T) {
			underEachUpdatePolicy(t, func(t *testing.T, b *bench, policy string) {
				expect := func(what string, want int, object client.Object) {
					t.Helper()
					outcome, err := b.apply(object)
					drifts := replicas != nil && what != "install"
					if err != nil || writes(outcome) != want || (len(outcome.Drifted) > 0) != drifts {
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
				check.NoError(t, b.Update(t.Context(), live, client.FieldOwner("kubectl-edit")))
				expect("the image drifted", 1, workload(policy, "two", replicas))
				check.SameNamed(t, "the image", "two", b.deployment().Spec.Template.Spec.Containers[0].Image)
				expect("at rest", 0, workload(policy, "two", replicas))
			})
		})
	}
}

// A number of replicas that changes in the manifest is what was asked for last. It is
// kept only if an autoscaler decides about it.
func TestAChangedNumberOfReplicasIsWrittenUnlessAnAutoscalerDecides(t *testing.T) {
	autoscaler := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"maxReplicas": int64(9), "scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}},
	}}
	for name, tc := range map[string]struct {
		by      string
		beside  []client.Object
		written bool
	}{
		"by hand":                          {by: "kubectl", written: true},
		"by the controller of autoscalers": {by: "kube-controller-manager"},
		"an autoscaler is a dependent":     {by: "other-client", beside: []client.Object{autoscaler}},
	} {
		t.Run(name, func(t *testing.T) {
			underEachUpdatePolicy(t, func(t *testing.T, b *bench, policy string) {
				apply := func(replicas int64) reconciler.Outcome {
					t.Helper()
					return check.Must(b.apply(append([]client.Object{workload(policy, "one", replicas)}, tc.beside...)...))(t)
				}
				apply(3)
				b.scale(1, tc.by)
				outcome := apply(3)
				if got := *b.deployment().Spec.Replicas; got != 1 || (len(outcome.Drifted) == 1) != tc.written {
					t.Errorf("scaled: %d replicas, drifted %v", got, outcome.Drifted)
				}
				if tc.written && !strings.HasPrefix(outcome.Drifted[0].Drift.String(), "kubectl changed spec.replicas") {
					t.Errorf("drifted: %s", outcome.Drifted[0].Drift)
				}
				want := int32(1)
				if tc.written {
					want = 4
				}
				outcome = apply(4)
				if got := *b.deployment().Spec.Replicas; got != want || len(outcome.Drifted) > 0 {
					t.Errorf("the manifest asks for 4: %d replicas, drifted %v", got, outcome.Drifted)
				}
				if outcome := apply(4); writes(outcome) > 0 {
					t.Errorf("steps %v at rest", outcome.Steps)
				}
			})
		})
	}
}

func TestReplicasThatLeaveTheManifestStay(t *testing.T) {
	underEachUpdatePolicy(t, func(t *testing.T, b *bench, policy string) {
		for i, object := range []client.Object{workload(policy, "one", int64(5)), workload(policy, "one", nil), workload(policy, "two", nil)} {
			check.NoError(t, check.ErrorOf(b.apply(object)))
			if got := b.deployment(); *got.Spec.Replicas != 5 || got.Generation > int64(i+1) {
				t.Errorf("step %d: %d replicas, generation %d", i, *got.Spec.Replicas, got.Generation)
			}
		}
	})
}
