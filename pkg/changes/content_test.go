// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestWhatIsAChangeOfContent(t *testing.T) {
	replicas := func(n int32) appsv1.DeploymentSpec { return appsv1.DeploymentSpec{Replicas: &n} }
	object := func(content map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: content}
	}
	metadata := func(generation int64, version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Generation: generation, ResourceVersion: version}}
	}
	for _, tc := range []struct {
		name     string
		old, new client.Object
		want     bool
	}{
		{"nothing", configMap("1", "1", "a"), configMap("1", "2", "a"), false},
		{"data", configMap("1", "1", "a"), configMap("1", "2", "b"), true},
		{"binary data", &corev1.ConfigMap{}, &corev1.ConfigMap{BinaryData: map[string][]byte{"a": {1}}}, true},
		{"immutable", &corev1.Secret{}, &corev1.Secret{Immutable: new(true)}, true},
		{"metadata", configMap("1", "1", "a"), configMap("1", "2", "a", "example.com/x"), false},
		{"type", &corev1.ConfigMap{}, &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap"}}, false},
		{"spec", &appsv1.Deployment{Spec: replicas(1)}, &appsv1.Deployment{Spec: replicas(2)}, true},
		{"equal spec", &appsv1.Deployment{Spec: replicas(1)}, &appsv1.Deployment{Spec: replicas(1)}, false},
		{"status", &appsv1.Deployment{}, &appsv1.Deployment{Status: appsv1.DeploymentStatus{Replicas: 1}}, false},
		{"generation, which status may move, too", &appsv1.Deployment{}, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 2}}, false},
		{"rules", &rbacv1.Role{}, &rbacv1.Role{Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}}}}, true},
		{"nil and empty", &rbacv1.Role{}, &rbacv1.Role{Rules: []rbacv1.PolicyRule{}}, false},
		{"unstructured: spec", object(map[string]any{"spec": "a"}), object(map[string]any{"spec": "b"}), true},
		{"unstructured: status", object(map[string]any{"status": "a"}), object(map[string]any{"status": "b"}), false},
		{"unstructured: metadata", object(map[string]any{"metadata": "a"}), object(map[string]any{"metadata": "b"}), false},
		{"unstructured: a new field", object(map[string]any{}), object(map[string]any{"data": "b"}), true},
		{"metadata only: generation", metadata(1, "1"), metadata(2, "2"), true},
		{"metadata only: same generation", metadata(1, "1"), metadata(1, "2"), false},
		{"metadata only: no generation", metadata(0, "1"), metadata(0, "2"), true},
		{"metadata only: nothing", metadata(0, "1"), metadata(0, "1"), false},
		{"unexported fields: a change", &shy{Spec: inner{1}}, &shy{Spec: inner{2}}, true},
		{"unexported fields: no change", &shy{Spec: inner{1}}, &shy{Spec: inner{1}}, false},
		{"another type", &corev1.ConfigMap{}, &corev1.Secret{}, true},
	} {
		if got := ContentChanged(tc.old, tc.new); got != tc.want {
			t.Errorf("%s: %t", tc.name, got)
		}
	}
}

// shy is an object that not every comparison bears.
type shy struct {
	corev1.ConfigMap
	Spec inner
}

type inner struct{ n int }

func TestActionsAndVerbs(t *testing.T) {
	for action, verb := range map[ReconcileAction]ResourceAction{
		ReconcileActionCreated: ResourceActionCreate, ReconcileActionUpdated: ResourceActionUpdate, ReconcileActionDeleted: ResourceActionDelete,
	} {
		if ResourceActionFromReconcile(action) != verb || ReconcileActionFromResource(verb) != action {
			t.Errorf("%s and %s do not belong together", action, verb)
		}
	}
	if ResourceActionFromReconcile(ReconcileActionResynced) != "" || ResourceActionFromReconcile(ReconcileActionUnknown) != "" || ReconcileActionFromResource("CONNECT") != ReconcileActionUnknown {
		t.Error("there is a verb for what has none")
	}
}
