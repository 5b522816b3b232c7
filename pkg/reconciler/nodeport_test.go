// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodePort is the manifest of a Service with a fixed node port.
func nodePort(name string, port int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"type": "NodePort", "ports": []any{map[string]any{"port": int64(80), "nodePort": port}},
		},
	}}
}

func (b *bench) hasService(name string) bool {
	b.t.Helper()
	err := b.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, &corev1.Service{})
	if client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
	return err == nil
}

func TestARenamedServiceGetsTheNodePortOfTheOldOne(t *testing.T) {
	for _, policy := range []string{"replace", "ssa-override"} {
		t.Run(policy, func(t *testing.T) {
			b := newBench(t)
			service := func(name string) client.Object {
				object := nodePort(name, 30177)
				object.SetAnnotations(map[string]string{engineName + "/update-policy": policy})
				return object
			}
			b.mustApply(service("old"), config("a", "1"))
			outcome := b.mustApply(service("new"), config("a", "1"))
			if !b.hasService("new") || b.hasService("old") {
				t.Errorf("old: %t, new: %t, want only the new one", b.hasService("old"), b.hasService("new"))
			}
			if outcome.Steps["create"] != 1 || outcome.Steps["delete"] != 1 {
				t.Errorf("steps %v, want one creation and one deletion", outcome.Steps)
			}
			if outcome := b.mustApply(service("new"), config("a", "1")); len(outcome.Steps) > 0 {
				t.Errorf("steps %v at rest", outcome.Steps)
			}
			if outcome, err := b.delete(); err != nil || !outcome.Done() {
				t.Errorf("delete: %v, waiting for %v", err, outcome.Waiting)
			}
		})
	}
}
