// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/check"
)

// typed returns an input with a scheme.
func typed(t *testing.T, objects ...client.Object) Input {
	t.Helper()
	in := input(objects...)
	in.Scheme = runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, networkingv1.AddToScheme} {
		check.NoError(t, add(in.Scheme))
	}
	return in
}

func TestTypedObjects(t *testing.T) {
	objects := build(t, typed(t,
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "api"},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(3)),
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}},
			},
			Status: appsv1.DeploymentStatus{Replicas: 5},
		},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Data: map[string][]byte{"a": []byte("x")}, StringData: map[string]string{"b": "y"}},
	))
	secret, deployment := objects[0].Manifest.Object, objects[1].Manifest.Object
	if deployment["apiVersion"] != "apps/v1" || deployment["kind"] != "Deployment" {
		t.Errorf("got %v %v", deployment["apiVersion"], deployment["kind"])
	}
	if replicas := at(deployment, "spec", "replicas"); replicas != int64(3) {
		t.Errorf("replicas are %v (%T)", replicas, replicas)
	}
	if deployment["status"] != nil {
		t.Errorf("the status was kept: %v", deployment["status"])
	}
	if data, _ := json.Marshal(deployment); strings.Contains(string(data), "creationTimestamp") {
		t.Errorf("empty timestamps were kept: %s", data)
	}
	if diff := cmp.Diff(map[string]any{"a": "eA==", "b": "eQ=="}, secret["data"]); diff != "" || secret["stringData"] != nil {
		t.Error(diff, secret["stringData"])
	}
}

func TestEmptyFieldsOfTypedObjectsAreKept(t *testing.T) {
	objects := build(t, typed(t, &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "deny"}}))
	// The empty selector selects every pod.
	if selector, _ := at(objects[0].Manifest.Object, "spec", "podSelector").(map[string]any); selector == nil {
		t.Errorf("got %v", objects[0].Manifest.Object)
	}
}

func TestUntypedObjectsKeepUnknownFields(t *testing.T) {
	objects := build(t, typed(t, parse(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {fieldOfTomorrow: {x: [1, 2.5, null, true]}, template: {metadata: {creationTimestamp: null}}}, extra: {}}`)...))
	manifest := objects[0].Manifest.Object
	want := map[string]any{"fieldOfTomorrow": map[string]any{"x": []any{int64(1), 2.5, nil, true}}, "template": map[string]any{"metadata": map[string]any{"creationTimestamp": nil}}}
	if diff := cmp.Diff(want, normalize(t, manifest)["spec"]); diff != "" || manifest["extra"] == nil {
		t.Error(diff)
	}
}

func TestValuesThatGeneratorsPutIntoMaps(t *testing.T) {
	type label string
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "a", "labels": map[string]string{"x": "y"}, "finalizers": []string{"f"}},
		"values": []any{
			1, int32(2), int8(3), uint64(math.MaxInt64), float32(0.5), json.Number("7"), json.Number("1.5"),
			[]string{"a"}, []map[string]any{{"b": 1}}, map[string]int{"c": 2}, intstr.FromString("80%"), new("p"), label("l"),
			map[string]string(nil), []any(nil),
		},
	}}
	objects := build(t, input(obj))
	want := []any{
		int64(1), int64(2), int64(3), int64(math.MaxInt64), 0.5, int64(7), 1.5,
		[]any{"a"}, []any{map[string]any{"b": int64(1)}}, map[string]any{"c": int64(2)}, "80%", "p", "l",
		nil, nil,
	}
	check.Equal(t, want, objects[0].Manifest.Object["values"])
	// A copy by Kubernetes panics on everything but the types of JSON.
	objects[0].Manifest.DeepCopy()
}

// Twin is a type that was registered under two kinds.
type Twin struct{ corev1.ConfigMap }

// Rogue panics whatever it is asked for.
type Rogue struct{ client.Object }

func TestObjectsThatCannotBeRead(t *testing.T) {
	self := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}
	self["self"] = self
	tests := []struct {
		name string
		in   Input
		want string
	}{
		{"nil", typed(t, nil), "object 1: is nil"},
		{"a nil pointer", typed(t, &corev1.ConfigMap{}, (*corev1.ConfigMap)(nil)), "object 2: is nil"},
		{"a nil untyped object", typed(t, (*unstructured.Unstructured)(nil)), "object 1: is nil"},
		{"an empty untyped object", typed(t, &unstructured.Unstructured{}), "object 1: kind is missing"},
		{"an empty typed object", typed(t, &corev1.ConfigMap{}), "object 1 (ConfigMap): metadata.name is missing"},
		{"metadata only", typed(t, &metav1.PartialObjectMetadata{}), "object 1: *v1.PartialObjectMetadata cannot be converted: it holds metadata only"},
		{"a type that the scheme does not know", typed(t, &Twin{}), "object 1: *desired.Twin cannot be converted: it has no apiVersion and kind: "},
		{"an object that panics", typed(t, Rogue{}), "object 1: panicked: "},
		{"a value without JSON", typed(t, &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"list": []any{1, make(chan int)}}}}), "object 1: spec.list[1]: chan int has no form in JSON"},
		{"a number without JSON", typed(t, &unstructured.Unstructured{Object: map[string]any{"spec": math.NaN()}}), "object 1: spec: NaN is not a number in JSON"},
		{"a wrong number", typed(t, &unstructured.Unstructured{Object: map[string]any{"spec": json.Number("x")}}), `object 1: spec: "x" is not a number`},
		{"a map that holds itself", typed(t, &unstructured.Unstructured{Object: self}), "object 1: values are nested too deeply"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { expectMistake(t, tt.in, tt.want) })
	}
}

func TestTypesUnderSeveralKindsMustSayWhich(t *testing.T) {
	in := typed(t, &Twin{corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}})
	in.Scheme.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("ConfigMapA"), &Twin{})
	in.Scheme.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("ConfigMapB"), &Twin{})
	expectMistake(t, in, "object 1: *desired.Twin cannot be converted: it has no apiVersion and kind: multiple GroupVersionKinds")

	in.Objects = []client.Object{&Twin{corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
	}}}
	if objects := build(t, in); objects[0].Key.Kind != "ConfigMap" {
		t.Errorf("got %s", objects[0].Key)
	}
}
