// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/status"
)

func ExampleAnalyze() {
	deployment := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "Deployment",
		"metadata":   map[string]any{"name": "api", "namespace": "shop"},
		"spec":       map[string]any{"replicas": int64(3)},
		"status":     map[string]any{"replicas": int64(3), "updatedReplicas": int64(3), "readyReplicas": int64(1)},
	}}
	analysis := status.Analyze(deployment, status.Options{})
	fmt.Printf("%s: %s\n", analysis.Readiness, analysis.Message)
	// Output: NotReady: 1 of 3 replicas ready
}

func ExampleAnalyze_hints() {
	database := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1",
		"kind":       "Database",
		"metadata":   map[string]any{"name": "orders", "namespace": "shop"},
	}}
	// Nothing shows that a status is to come, unless the caller says so.
	fmt.Println(status.Analyze(database, status.Options{}).Readiness)
	hints := status.Hints{ReadyCondition: true}
	fmt.Println(status.Analyze(database, status.Options{Hints: hints}).Message)
	// Output:
	// Ready
	// has no condition Ready yet
}

func ExampleCompileReadyWhen() {
	claim := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "PersistentVolumeClaim",
		"metadata":   map[string]any{"name": "data", "namespace": "shop"},
		"status":     map[string]any{"phase": "Pending"},
	}}
	fmt.Println(status.Analyze(claim, status.Options{}).Readiness)

	// This claim is bound only when a pod uses it, which comes later.
	program, err := status.CompileReadyWhen("self.status.phase in ['Pending', 'Bound']")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(status.Analyze(claim, status.Options{ReadyWhen: program}).Readiness)
	// Output:
	// NotReady
	// Ready
}
