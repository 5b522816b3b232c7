// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

func manifestOf(t *testing.T, policy, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetAnnotations(map[string]string{engineName + "/update-policy": policy})
	return object
}

func TestAnEmptyMapThatIsGoneIsRepaired(t *testing.T) {
	const pods = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: e}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {
		metadata: {annotations: {}, labels: {a: b}}, spec: {nodeSelector: {}, securityContext: {}, volumes: [{name: v, emptyDir: {}}], containers: [{name: c, image: i, resources: {limits: {}}}]}}}}`
	const network = `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: e}, spec: {podSelector: {}, ingress: [{}]}}`
	for name, tt := range map[string]struct{ manifest, noDrift, drift, field string }{
		"a source of a volume": {
			pods, `{"op":"add","path":"/spec/template/spec/securityContext/fsGroup","value":1}`,
			`{"op":"replace","path":"/spec/template/spec/volumes/0","value":{"name":"v","hostPath":{"path":"/"}}}`, "emptyDir",
		},
		"a selector of everything": {
			network, `{"op":"add","path":"/metadata/labels/theirs","value":"x"}`,
			`{"op":"replace","path":"/spec/podSelector","value":{"matchLabels":{"a":"b"}}}`, "spec.podSelector",
		},
		"a rule for everything": {
			network, `{"op":"add","path":"/metadata/labels/theirs","value":"x"}`,
			`{"op":"replace","path":"/spec/ingress","value":[{"from":[{"podSelector":{}}]}]}`, "ingress",
		},
	} {
		t.Run(name, func(t *testing.T) {
			underEachUpdatePolicy(t, func(t *testing.T, b *bench, policy string) {
				object := manifestOf(t, policy, tt.manifest)
				apply := func() (reconciler.Outcome, error) { return b.apply(object.DeepCopy()) }
				live := object.DeepCopy()
				read := func() {
					t.Helper()
					if err := b.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "e"}, live); err != nil {
						t.Fatal(err)
					}
				}
				edit := func(operation string) {
					t.Helper()
					read()
					if err := b.Patch(t.Context(), live, client.RawPatch(types.JSONPatchType, []byte("["+operation+"]")), client.FieldOwner("kubectl-patch")); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := apply(); err != nil {
					t.Fatal(err)
				}
				edit(tt.noDrift)
				if outcome, err := apply(); err != nil || writes(outcome) > 0 {
					t.Errorf("what others add is drift: %v, steps %v", err, outcome.Steps)
				}
				edit(tt.drift)
				outcome, err := apply()
				if policy == "ssa-merge" && tt.field == "emptyDir" {
					if err == nil || !strings.Contains(err.Error(), "kubectl-patch") || !strings.Contains(err.Error(), "update-policy: replace") {
						t.Errorf("got %v, want an error that names the manager and the policy", err)
					}
					return
				}
				if err != nil || writes(outcome) != 1 || len(outcome.Notes) == 0 || !strings.Contains(outcome.Notes[0].Message, tt.field) {
					t.Errorf("%v, steps %v, notes %v", err, outcome.Steps, outcome.Notes)
				}
				if outcome, err := apply(); err != nil || writes(outcome) > 0 {
					t.Errorf("afterwards: %v, steps %v", err, outcome.Steps)
				}
			})
		})
	}
}

// A typed client drops an empty map from a custom resource that it writes back, but for one that is a pointer to a struct.
func TestAnEmptyMapThatATypedClientDropsIsNoDrift(t *testing.T) {
	b := newBench(t)
	crd := definition("emptymaps", "EmptyMap")
	schema := map[string]any{"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": map[string]any{
		"tls": map[string]any{"type": "object"},
		"items": map[string]any{"type": "array", "items": map[string]any{"type": "object", "properties": map[string]any{
			"name": map[string]any{"type": "string"}, "config": map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}},
		}}},
	}}}}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	versions[0].(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": schema}
	if err := unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	if err := b.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Delete(context.WithoutCancel(t.Context()), crd) })
	object := manifestOf(t, "replace", `{apiVersion: engine.corbel.run/v1, kind: EmptyMap, metadata: {name: e}, spec: {tls: {}, items: [{name: a, config: {}}]}}`)
	b.until("the object to be written", func() bool {
		outcome, err := b.apply(object)
		return err == nil && outcome.Done()
	})
	for _, tt := range []struct {
		live   string
		writes int
	}{{`{tls: {}, items: [{name: a}]}`, 0}, {`{items: [{name: a}]}`, 1}} {
		live := manifestOf(t, "replace", `{apiVersion: engine.corbel.run/v1, kind: EmptyMap, metadata: {name: e}}`)
		if err := b.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "e"}, live); err != nil {
			t.Fatal(err)
		}
		live.Object["spec"] = manifestOf(t, "replace", `{spec: `+tt.live+`}`).Object["spec"]
		if err := b.Update(t.Context(), live, client.FieldOwner("typed")); err != nil {
			t.Fatal(err)
		}
		if outcome := b.mustApply(object); writes(outcome) != tt.writes {
			t.Errorf("%s: steps %v", tt.live, outcome.Steps)
		}
	}
}

func TestTheRulesOfAnAggregatedRoleAreLeftToItsController(t *testing.T) {
	underEachUpdatePolicy(t, func(t *testing.T, b *bench, policy string) {
		role := func(more string) *unstructured.Unstructured {
			return manifestOf(t, policy, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: `+b.namespace+`, labels: {x: "`+more+`"}},
				aggregationRule: {clusterRoleSelectors: [{matchLabels: {x: none}}]}, rules: []}`)
		}
		live := &rbacv1.ClusterRole{}
		fill := func() {
			t.Helper()
			aggregated := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": b.namespace},
				"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}},
			}}
			if err := b.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(aggregated), client.FieldOwner("clusterrole-aggregation-controller"), client.ForceOwnership); err != nil {
				t.Fatal(err)
			}
		}
		b.mustApply(role("1"))
		fill()
		if outcome := b.mustApply(role("1")); writes(outcome)+len(outcome.Drifted) > 0 {
			t.Errorf("steps %v, drifted %v", outcome.Steps, outcome.Drifted)
		}
		if outcome := b.mustApply(role("2")); writes(outcome) != 1 {
			t.Errorf("steps %v", outcome.Steps)
		}
		if err := b.Get(t.Context(), client.ObjectKey{Name: b.namespace}, live); err != nil || len(live.Rules) != 1 || live.Labels["x"] != "2" {
			t.Errorf("%v: rules %v, labels %v", err, live.Rules, live.Labels)
		}
		if err := b.Delete(t.Context(), live); err != nil {
			t.Fatal(err)
		}
	})
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
