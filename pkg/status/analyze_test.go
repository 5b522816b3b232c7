// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/test/check"
)

// object reads an object from YAML, or from a type and YAML that follows:
// "apps/v1 Deployment {spec: {replicas: 3}}".
func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	head, content, _ := strings.Cut(text, "{")
	obj := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte("{" + content))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	version, kind, _ := strings.Cut(strings.TrimSpace(head), " ")
	obj.Object = map[string]any{}
	if err := obj.UnmarshalJSON([]byte(strings.Replace(string(data), "{", `{"apiVersion":"`+version+`","kind":"`+kind+`",`, 1))); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return obj
}

type analysis struct {
	name, object string
	options      Options
	want         Status
}

func (a analysis) check(t *testing.T) {
	t.Helper()
	t.Run(a.name, func(t *testing.T) {
		obj := object(t, a.object)
		before := obj.DeepCopy()
		got := Analyze(obj, a.options)
		check.Equal(t, a.want, got)
		if diff := cmp.Diff(before.Object, obj.Object); diff != "" {
			t.Error("the object was changed:", diff)
		}
	})
}

func TestCustomResources(t *testing.T) {
	const cr = `example.com/v1 Foo {metadata: {name: a, generation: 2}, `
	for _, tt := range []analysis{
		{"without any status it is ready", cr + `spec: {a: 1}}`, Options{}, Status{Readiness: Ready}},
		{"of a type that declares conditions is of unknown readiness without status", cr + `spec: {a: 1}}`, Options{DeclaresConditions: true}, Status{ReadinessUnknown, "has no status yet"}},
		{"with a status of empty values is of unknown readiness", cr + `status: {conditions: [], phase: "", x: {}}}`, Options{DeclaresConditions: true}, Status{ReadinessUnknown, "has no status yet"}},
		{"with any status is analyzed", cr + `status: {phase: Done}}`, Options{DeclaresConditions: true}, Status{Readiness: Ready}},
		{"with Ready True", cr + `status: {conditions: [{type: Ready, status: "True"}]}}`, Options{DeclaresConditions: true}, Status{Readiness: Ready}},
		{"with Ready False", cr + `status: {conditions: [{type: Ready, status: "False", reason: Boom, message: "no luck"}]}}`, Options{}, Status{NotReady, "Boom: no luck"}},
		{"with Ready Unknown", cr + `status: {conditions: [{type: Ready, status: Unknown, reason: Wait}]}}`, Options{}, Status{NotReady, "Wait"}},
		{"that is reconciling", cr + `status: {conditions: [{type: Reconciling, status: "True", reason: Busy, message: m}, {type: Ready, status: "True"}]}}`, Options{}, Status{NotReady, "Busy: m"}},
		{"that is stalled", cr + `status: {conditions: [{type: Stalled, status: "True", reason: Bad, message: m}]}}`, Options{}, Status{Failed, "Bad: m"}},
		{"with a status of an earlier generation", cr + `status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}]}}`, Options{}, Status{NotReady, "the latest change is not observed yet"}},
		{"that failed at an earlier generation", cr + `status: {observedGeneration: 1, conditions: [{type: Stalled, status: "True"}]}}`, Options{}, Status{NotReady, "the latest change is not observed yet"}},
		{"with the default generation of an untouched status", cr + `status: {observedGeneration: -1}}`, Options{DeclaresConditions: true}, Status{NotReady, "the latest change is not observed yet"}},
		{"that is being deleted", `example.com/v1 Foo {metadata: {name: a, deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {conditions: [{type: Ready, status: "True"}]}}`, Options{}, Status{NotReady, "is being deleted"}},
		{"long messages are shortened", cr + `status: {conditions: [{type: Ready, status: "False", reason: R, message: "` + strings.Repeat("ä", 500) + `"}]}}`, Options{}, Status{NotReady, "R: " + strings.Repeat("ä", 97) + "..."}},
		{"messages of several lines become one", cr + `status: {conditions: [{type: Ready, status: "False", message: "a\n\tb\u0000c  d"}]}}`, Options{}, Status{NotReady, "a b c d"}},
	} {
		tt.check(t)
	}
}

func TestHints(t *testing.T) {
	const cr = `example.com/v1 Foo {metadata: {name: a, generation: 2}, `
	generation := Options{Hints: Hints{ObservedGeneration: true}}
	ready := Options{Hints: Hints{ReadyCondition: true}}
	both := Options{Hints: Hints{Conditions: []string{"A", "B"}}}
	for _, tt := range []analysis{
		{"the observed generation is missing", cr + `status: {x: 1}}`, generation, Status{NotReady, "status.observedGeneration is not set yet"}},
		{"the observed generation is old", cr + `status: {observedGeneration: 1}}`, generation, Status{NotReady, "the latest change is not observed yet"}},
		{"the observed generation is there", cr + `status: {observedGeneration: 2}}`, generation, Status{Readiness: Ready}},
		{"the observed generation of the condition is there", cr + `status: {conditions: [{type: Ready, status: "True", observedGeneration: 2}]}}`, generation, Status{Readiness: Ready}},
		{"the observed generation of the condition is old", cr + `status: {conditions: [{type: Ready, status: "True", observedGeneration: 1}]}}`, generation, Status{NotReady, "the latest change is not observed yet"}},
		{"the Ready condition is missing", cr + `status: {x: 1}}`, ready, Status{NotReady, "has no condition Ready yet"}},
		{"the Ready condition is there", cr + `status: {conditions: [{type: Ready, status: "True"}]}}`, ready, Status{Readiness: Ready}},
		{"all conditions are True", cr + `status: {conditions: [{type: A, status: "True"}, {type: B, status: "True"}]}}`, both, Status{Readiness: Ready}},
		{"one condition is missing", cr + `status: {conditions: [{type: A, status: "True"}]}}`, both, Status{NotReady, "has no condition B yet"}},
		{"one condition is False", cr + `status: {conditions: [{type: A, status: "False", reason: R, message: m}, {type: B, status: "True"}]}}`, both, Status{NotReady, "condition A is False: R: m"}},
		{"hints hold for objects that are always ready as well", `v1 ConfigMap {metadata: {name: a}}`, both, Status{NotReady, "has no condition A yet"}},
		{"a failure counts more than a hint", cr + `status: {conditions: [{type: Stalled, status: "True", reason: R}]}}`, both, Status{Failed, "R"}},
		{"with a hint an empty status is not ready", cr + `status: {}}`, Options{Hints: Hints{ReadyCondition: true}, DeclaresConditions: true}, Status{NotReady, "has no condition Ready yet"}},
	} {
		tt.check(t)
	}
}

func TestOddShapesAreNotReady(t *testing.T) {
	for _, tt := range []analysis{
		{"status is a string", `example.com/v1 Foo {metadata: {name: a, generation: 1}, status: x}`, Options{}, Status{Readiness: NotReady}},
		{"observedGeneration is a string", `example.com/v1 Foo {metadata: {name: a, generation: 1}, status: {observedGeneration: x}}`, Options{}, Status{NotReady, "status.observedGeneration is not an integer but string"}},
		{"conditions are a map", `example.com/v1 Foo {metadata: {name: a}, status: {conditions: {a: b}}}`, Options{}, Status{Readiness: NotReady}},
		{"conditions are strings", `example.com/v1 Foo {metadata: {name: a}, status: {conditions: [a]}}`, Options{}, Status{Readiness: NotReady}},
		{"a condition has a bool for a status", `example.com/v1 Foo {metadata: {name: a}, status: {conditions: [{type: Ready, status: true}]}}`, Options{}, Status{Readiness: NotReady}},
		{"a generation is a string", `apps/v1 DaemonSet {metadata: {name: a, generation: x}, status: {observedGeneration: 1}}`, Options{}, Status{Readiness: NotReady}},
		{"container statuses are strings", `v1 Pod {metadata: {name: a}, status: {phase: Running, containerStatuses: [a]}}`, Options{}, Status{Readiness: NotReady}},
		{"a container's state is a string", `v1 Pod {metadata: {name: a}, status: {phase: Running, containerStatuses: [{name: a, state: {waiting: x}}]}}`, Options{}, Status{Readiness: NotReady}},
		{"a pod's phase is unknown", `v1 Pod {metadata: {name: a}, status: {phase: Dreaming}}`, Options{}, Status{NotReady, "the status cannot be understood: unknown phase Dreaming"}},
		{"replicas are strings", `apps/v1 Deployment {metadata: {name: a}, spec: {replicas: x}, status: {readyReplicas: y}}`, Options{}, Status{NotReady, "0 of 1 replicas ready"}},
		{"metadata is a string", `example.com/v1 Foo {metadata: x}`, Options{}, Status{Readiness: NotReady}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			obj := &unstructured.Unstructured{}
			head, content, _ := strings.Cut(tt.object, "{")
			check.NoError(t, yaml.Unmarshal([]byte("{"+content), &obj.Object))
			version, kind, _ := strings.Cut(strings.TrimSpace(head), " ")
			obj.Object["apiVersion"], obj.Object["kind"] = version, kind
			got := Analyze(obj, tt.options)
			if got.Readiness != tt.want.Readiness || got.Message == "" {
				t.Errorf("got %v %q", got.Readiness, got.Message)
			}
			if tt.want.Message != "" && got.Message != tt.want.Message {
				t.Errorf("got %q, want %q", got.Message, tt.want.Message)
			}
		})
	}
	if got := Analyze(nil, Options{}); got.Readiness != NotReady {
		t.Errorf("nothing is %v", got.Readiness)
	}
	if got := Analyze(&unstructured.Unstructured{}, Options{}); got.Readiness != NotReady {
		t.Errorf("an empty object is %v", got.Readiness)
	}
}
