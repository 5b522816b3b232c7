// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

func manifest(apiVersion, kind, name string, fields map[string]any) client.Object {
	object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": "shop", "name": name}}
	for field, value := range fields {
		object[field] = value
	}
	return &unstructured.Unstructured{Object: object}
}

func TestDiffOfTwoSetsOfManifests(t *testing.T) {
	type m = map[string]any
	workload := func(image string, replicas int64) client.Object {
		containers := []any{m{"name": "api", "image": image}}
		return manifest("apps/v1", "Deployment", "api", m{"spec": m{"replicas": replicas, "template": m{"spec": m{"containers": containers}}}})
	}
	const first, second = "correct-horse-battery", "staple-of-the-stable"
	before := []client.Object{
		workload("a:1", 1), manifest("v1", "ConfigMap", "gone", nil), manifest("v1", "ConfigMap", "same", m{"data": m{"x": "1"}}),
		manifest("v1", "Secret", "password", m{"stringData": m{"password": first}}),
	}
	after := []client.Object{
		workload("a:2", 1), manifest("v1", "ConfigMap", "new", nil), manifest("v1", "ConfigMap", "same", m{"data": m{"x": "1"}}),
		manifest("v1", "Secret", "password", m{"stringData": m{"password": second}}),
	}
	var lines []string
	for _, change := range reconciler.Diff(t.Context(), before, after) {
		line := fmt.Sprintf("%s %s", change.Class, change.Key)
		for _, field := range change.Fields {
			line += fmt.Sprintf(" %s: %s -> %s", field.Path, field.Old, field.New)
		}
		lines = append(lines, line)
	}
	text := strings.Join(lines, "\n")
	if strings.Contains(text, first) || strings.Contains(text, second) {
		t.Errorf("a value of a Secret is shown:\n%s", text)
	}
	want := []string{
		"Delete ConfigMap shop/gone", "Create ConfigMap shop/new",
		"RestartsPods Deployment shop/api spec.template.spec.containers[name=api].image: a:1 -> a:2",
		"Update Secret shop/password stringData.password: *** -> ***",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
