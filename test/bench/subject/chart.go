// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ChartObjects is how many objects Chart returns.
const ChartObjects = 4

// Chart returns the objects of a small service, as charts have them: one of them is a Deployment without replicas. The
// cpu is in its template alone, the version is a label of all.
func Chart(name, cpu, version string) []*unstructured.Unstructured {
	labels := map[string]any{"app": name}
	object := func(apiVersion, kind string, content map[string]any) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
		maps.Copy(object.Object, content)
		object.SetName(name)
		object.SetLabels(map[string]string{"app": name, "chart": version})
		return object
	}
	port := map[string]any{"name": "http", "port": int64(9898), "targetPort": "http", "protocol": "TCP"}
	probe := map[string]any{"exec": map[string]any{"command": []any{"podcli", "check", "http", "localhost:9898/readyz"}}}
	container := map[string]any{
		"name": "podinfo", "image": "podinfo", "ports": []any{map[string]any{"name": "http", "containerPort": int64(9898), "protocol": "TCP"}},
		"resources": map[string]any{"requests": map[string]any{"cpu": cpu + "m", "memory": "16Mi"}}, "livenessProbe": probe, "readinessProbe": probe,
		"env": []any{map[string]any{"name": "PODINFO_UI_COLOR", "value": "#34577c"}},
	}
	backend := map[string]any{"service": map[string]any{"name": name, "port": map[string]any{"name": "http"}}}
	return []*unstructured.Unstructured{
		object("v1", "ServiceAccount", nil),
		object("v1", "Service", map[string]any{"spec": map[string]any{"type": "ClusterIP", "selector": labels, "ports": []any{port}}}),
		object("apps/v1", "Deployment", map[string]any{"spec": map[string]any{
			"replicas": int64(0), "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"serviceAccountName": name, "containers": []any{container}}},
		}}),
		object("networking.k8s.io/v1", "Ingress", map[string]any{"spec": map[string]any{"rules": []any{map[string]any{
			"host": name + ".example.com", "http": map[string]any{"paths": []any{map[string]any{"path": "/", "pathType": "Prefix", "backend": backend}}},
		}}}}),
	}
}
