// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

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

// deployment is the Deployment of the bench, which never becomes ready.
func (b *bench) deployment() *appsv1.Deployment {
	b.t.Helper()
	live := &appsv1.Deployment{}
	if err := b.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "a"}, live); err != nil {
		b.t.Fatal(err)
	}
	return live
}

func (b *bench) scale(replicas int32, by ...string) {
	b.t.Helper()
	manager := append(by, "other-client")[0]
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "a"}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	if err := b.SubResource("scale").Update(b.t.Context(), b.deployment(), client.WithSubResourceBody(scale), client.FieldOwner(manager)); err != nil {
		b.t.Fatal(err)
	}
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
					outcome, err := b.apply(append([]client.Object{workload(policy, "one", replicas)}, tc.beside...)...)
					if err != nil {
						t.Fatal(err)
					}
					return outcome
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
			if _, err := b.apply(object); err != nil {
				t.Fatal(err)
			}
			if got := b.deployment(); *got.Spec.Replicas != 5 || got.Generation > int64(i+1) {
				t.Errorf("step %d: %d replicas, generation %d", i, *got.Spec.Replicas, got.Generation)
			}
		}
	})
}
