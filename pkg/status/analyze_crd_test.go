// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package status

import "testing"

func TestDeclaresConditions(t *testing.T) {
	const with = `schema: {openAPIV3Schema: {properties: {status: {properties: {conditions: {type: array}}}}}}`
	tests := []struct {
		name, crd string
		want      bool
	}{
		{"declared in the version", `{spec: {versions: [{name: v1, ` + with + `}]}}`, true},
		{"declared in another version only", `{spec: {versions: [{name: v2, ` + with + `}, {name: v1}]}}`, false},
		{"a status without conditions", `{spec: {versions: [{name: v1, schema: {openAPIV3Schema: {properties: {status: {properties: {phase: {}}}}}}}]}}`, false},
		{"no status", `{spec: {versions: [{name: v1, schema: {openAPIV3Schema: {properties: {}}}}]}}`, false},
		{"no versions", `{spec: {}}`, false},
		{"versions of an odd shape", `{spec: {versions: [a, {name: 1}]}}`, false},
		{"no specification", `{metadata: {}}`, false},
	}
	for _, tt := range tests {
		crd := object(t, `apiextensions.k8s.io/v1 CustomResourceDefinition `+tt.crd)
		if got := DeclaresConditions(crd.Object, "v1"); got != tt.want {
			t.Errorf("%s: got %t", tt.name, got)
		}
	}
	if DeclaresConditions(nil, "v1") {
		t.Error("nothing declares conditions")
	}
}

func TestReadinessPrintsItself(t *testing.T) {
	for readiness, want := range map[Readiness]string{NotReady: "NotReady", Ready: "Ready", Failed: "Failed", ReadinessUnknown: "ReadinessUnknown", 7: "Readiness(?)"} {
		if got := readiness.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func BenchmarkAnalyze(b *testing.B) {
	obj := object(b, `apps/v1 Deployment {metadata: {name: a, generation: 1}, spec: {replicas: 3}, status: {observedGeneration: 1, replicas: 3, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 3, conditions: [{type: Progressing, status: "True", reason: NewReplicaSetAvailable}, {type: Available, status: "True"}]}}`)
	b.ReportAllocs()
	for b.Loop() {
		if Analyze(obj, Options{}).Readiness != Ready {
			b.Fatal("not ready")
		}
	}
}
