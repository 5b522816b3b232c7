// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
	"github.com/corbel-run/corbel/test/check"
)

// with returns an object of a kind with annotations; kinds of the core have no group.
func with(version, kind, name string, annotations ...string) string {
	var lines []string
	for _, annotation := range annotations {
		key, value, _ := strings.Cut(annotation, "=")
		lines = append(lines, fmt.Sprintf("shop.example.com/%s: %q", key, value))
	}
	return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s, annotations: {%s}}}", version, kind, name, strings.Join(lines, ", "))
}

func cm(name string, annotations ...string) string {
	return with("v1", "ConfigMap", name, annotations...)
}
func namespace(annotations ...string) string {
	return with("v1", "Namespace", "shop", annotations...)
}
func foo(annotations ...string) string { return with("example.com/v1", "Foo", "a", annotations...) }
func crd(annotations ...string) string {
	_, after, _ := strings.Cut(with("v1", "X", "x", annotations...), "annotations: {")
	return definitionOf("Namespaced", strings.TrimSuffix(after, "}}}"))
}

// documents joins objects.
func documents(objects ...string) string { return strings.Join(objects, "\n---\n") }

// expectOneMistake builds objects that have one mistake, or none.
func expectOneMistake(t *testing.T, objects, want string) {
	t.Helper()
	in := input(parse(t, objects)...)
	if want == "" {
		build(t, in)
		return
	}
	expectMistake(t, in, want)
	if _, err := Build(t.Context(), in); strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one mistake: %v", err)
	}
}

func TestOrders(t *testing.T) {
	tests := []struct {
		name, objects string
		want          string // empty: accepted
	}{
		{"an object after its namespace", documents(namespace("apply-order=-5"), cm("a")), ""},
		{"an object before its namespace", documents(namespace("apply-order=5"), cm("a")), "ConfigMap shop/a: its apply-order 0 is less than 5, that of the Namespace shop which it lives in"},
		{"an object that goes after its namespace", documents(namespace(), cm("a", "delete-order=3")), "ConfigMap shop/a: its delete-order 3 is greater than 0, that of the Namespace shop which it lives in"},
		{"an object that goes before its namespace", documents(namespace("delete-order=3"), cm("a")), ""},
		{"a namespace that stays", documents(namespace("delete-policy=orphan"), cm("a", "delete-order=3")), ""},
		{"an object that stays", documents(namespace(), cm("a", "delete-order=3", "delete-policy=orphan-on-delete")), ""},
		{"an object of another namespace", documents(with("v1", "Namespace", "other", "apply-order=5"), cm("a")), ""},
		{"an instance before its definition", documents(crd("apply-order=1"), foo()), "Foo shop/a: its apply-order 0 is less than 1, that of the CustomResourceDefinition foos.example.com which it is an instance of"},
		{"an instance that goes after its definition", documents(crd("delete-order=-1"), foo()), "Foo shop/a: its delete-order 0 is greater than -1"},
		{"an instance after its definition", documents(crd("apply-order=-1", "delete-order=1"), foo()), ""},
		{"an instance of an aggregated API before it", documents(strings.Replace(service, "name: v1.metrics.example.com", `name: v1.metrics.example.com, annotations: {shop.example.com/apply-order: "2"}`, 1), with("metrics.example.com/v1", "Bar", "a")), "Bar a: its apply-order 0 is less than 2, that of the APIService"},
		{"a last object in a namespace that stays as long as it", documents(namespace(), cm("a", "run-on=post-delete")), ""},
		{"a last object in a namespace that stays", documents(namespace("delete-policy=orphan-on-delete"), cm("a", "run-on=post-delete")), ""},
		{"a last object in a namespace of another owner", documents(cm("a", "run-on=post-delete")), ""},
		{"a first object of the deletion", documents(namespace("apply-order=5"), cm("a", "run-on=pre-delete")), ""},
		{"orders that are not known because of mistakes", documents(namespace("apply-order=x"), cm("a", "apply-order=-5")), "Namespace shop: annotation shop.example.com/apply-order"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { expectOneMistake(t, tt.objects, tt.want) })
	}
}

func TestDependencies(t *testing.T) {
	tests := []struct {
		name, objects string
		want          string // empty: accepted
	}{
		{"an object that is not there", cm("a", "depends-on=ConfigMap/b"), "ConfigMap shop/a: depends on \"ConfigMap/b\", which is not among the objects of this component"},
		{"an object of another namespace", documents(cm("a", "depends-on=ConfigMap/other/b"), cm("b")), "depends on \"ConfigMap/other/b\", which is not among"},
		{"itself", cm("a", "depends-on=ConfigMap/a"), "ConfigMap shop/a: depends on itself"},
		{"one of a later wave", documents(cm("a", "depends-on=ConfigMap/b"), cm("b", "apply-order=1")), "ConfigMap shop/a: depends on the ConfigMap shop/b with the apply-order 1, which is greater than 0"},
		{"one of a later stage of the same wave", documents(cm("a", "depends-on=apps/Deployment/b"), with("apps/v1", "Deployment", "b")), "ConfigMap shop/a: depends on the Deployment shop/b, which is applied later in the same wave because of its kind; give the Deployment shop/b a smaller apply-order than 0"},
		{"an instance of the same wave", documents(crd(), foo(), cm("a", "depends-on=example.com/Foo/a")), "ConfigMap shop/a: depends on the Foo shop/a, which is applied later in the same wave"},
		{"a namespace, by way of another object", documents(namespace("depends-on=ConfigMap/other/b"), with("v1", "ConfigMap", "b, namespace: other", "depends-on=ConfigMap/shop/a"), cm("a")), "Namespace shop: depends on the ConfigMap other/b, which is applied later in the same wave"},
		{"one that is deleted before", documents(cm("a", "depends-on=ConfigMap/b", "delete-order=2"), cm("b", "delete-order=1")), "ConfigMap shop/a: depends on the ConfigMap shop/b with the delete-order 1, which is less than 2, so that it would be deleted first"},
		{"an ordinary object, after the deletion", documents(cm("a", "depends-on=ConfigMap/b", "run-on=post-delete"), cm("b")), "ConfigMap shop/a: is to run after the deletion, but the ConfigMap shop/b which it depends on is gone by then"},
		{"what ran before the deletion, after it", documents(cm("a", "depends-on=ConfigMap/b", "run-on=post-delete"), cm("b", "run-on=pre-delete")), "ConfigMap shop/a: is to run after the deletion, but the ConfigMap shop/b which it depends on is gone by then"},
		{"the last one of a deletion, before it", documents(cm("a", "depends-on=ConfigMap/b", "run-on=pre-delete"), cm("b", "run-on=post-delete")), "ConfigMap shop/a: is to run before the deletion, but depends on the ConfigMap shop/b, which runs after it"},
		{"one that is applied only in deletion", documents(cm("a", "depends-on=ConfigMap/b"), cm("b", "run-on=pre-delete")), "ConfigMap shop/a: depends on the ConfigMap shop/b, which is applied only when the component is deleted"},
		{"a namespace that depends on what lives in it", documents(namespace("depends-on=ConfigMap/shop/a"), cm("a")), "Namespace shop: depends on the ConfigMap shop/a, which cannot exist without it"},
		{"a definition that depends on its instance", documents(crd("depends-on=example.com/Foo/shop/a"), foo()), "depends on the Foo shop/a, which cannot exist without it"},
		{"a circle of two", documents(cm("a", "depends-on=ConfigMap/b"), cm("b", "depends-on=ConfigMap/a")), "ConfigMap shop/a: depends on itself: ConfigMap shop/a -> ConfigMap shop/b -> ConfigMap shop/a"},
		{"a circle behind others", documents(cm("a", "depends-on=ConfigMap/b"), cm("b", "depends-on=ConfigMap/c,ConfigMap/d"), cm("c"), cm("d", "depends-on=ConfigMap/b")), "ConfigMap shop/b: depends on itself: ConfigMap shop/b -> ConfigMap shop/d -> ConfigMap shop/b"},
		{"an earlier wave, a later stage", documents(cm("a", "depends-on=apps/Deployment/b"), with("apps/v1", "Deployment", "b", "apply-order=-1")), ""},
		{"the same stage", documents(cm("a", "depends-on=ConfigMap/b"), cm("b")), ""},
		{"a type before a workload", documents(crd(), with("apps/v1", "Deployment", "b", "depends-on=apiextensions.k8s.io/CustomResourceDefinition/foos.example.com")), ""},
		{"an instance before another", documents(crd(), foo(), with("example.com/v1", "Foo", "b", "depends-on=example.com/Foo/a")), ""},
		{"deleted before what stays", documents(cm("a", "depends-on=ConfigMap/b", "delete-order=2"), cm("b", "delete-order=1", "delete-policy=orphan")), ""},
		{"a first object on an ordinary one", documents(cm("a", "depends-on=ConfigMap/b", "run-on=pre-delete"), cm("b", "apply-order=7")), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { expectOneMistake(t, tt.objects, tt.want) })
	}
}

func TestDependenciesBecomeExact(t *testing.T) {
	objects := build(t, input(parse(t, documents(
		cm("a", "depends-on=ConfigMap/b, ConfigMap/shop/b, rbac.authorization.k8s.io/ClusterRole/reader, Namespace/shop"),
		cm("b"),
		with("rbac.authorization.k8s.io/v1", "ClusterRole", "reader", "depends-on=Namespace/shop"),
		namespace("apply-order=-1"),
	))...))
	want := []policy.Reference{
		{Kind: "ConfigMap", Namespace: "shop", Name: "b"},
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "reader"},
		{Kind: "Namespace", Name: "shop"},
	}
	check.Equal(t, want, objects[0].Policies.DependsOn)
}

func TestADependencyWithMistakesIsNotMissing(t *testing.T) {
	in := input(parse(t, documents(cm("a", "depends-on=Secret/s"), `{apiVersion: v1, kind: Secret, metadata: {name: s, labels: [x]}}`))...)
	_, err := Build(t.Context(), in)
	if err == nil || strings.Contains(err.Error(), "depends on") {
		t.Errorf("got %v", err)
	}
}

func TestLongChainsAndCircles(t *testing.T) {
	const n = 1000
	var objects []string
	for i := range n {
		objects = append(objects, cm(fmt.Sprintf("c%d", i), fmt.Sprintf("depends-on=ConfigMap/c%d", i+1)))
	}
	chain := documents(append(objects, cm(fmt.Sprintf("c%d", n)))...)
	build(t, input(parse(t, chain)...))

	circle := documents(append(objects, cm(fmt.Sprintf("c%d", n), "depends-on=ConfigMap/c0"))...)
	expectMistake(t, input(parse(t, circle)...), "ConfigMap shop/c0: depends on itself: ConfigMap shop/c0 -> ConfigMap shop/c1 -> ")
	if _, err := Build(t.Context(), input(parse(t, circle)...)); len(err.Error()) > 1000 {
		t.Errorf("the message has %d bytes", len(err.Error()))
	}
}

func TestOnlyHooksAreBuiltForADeletion(t *testing.T) {
	in := input(parse(t, documents(
		cm("first", "run-on=pre-delete", "depends-on=ConfigMap/ordinary"),
		cm("last", "run-on=post-delete", "delete-order=3"),
		cm("ordinary"),
		cm("wrong", "apply-order=x"),
		with("gone.example.com/v1", "Gone", "a"),
	))...)
	in.HooksOnly = true
	objects := build(t, in)
	if len(objects) != 2 || objects[0].Key.Name != "first" || objects[1].Key.Name != "last" {
		t.Fatalf("got %v", objects)
	}
	if len(objects[0].Policies.DependsOn) > 0 {
		t.Errorf("it depends on what is there already: %v", objects[0].Policies.DependsOn)
	}
	in = input(parse(t, documents(cm("first", "run-on=sometimes"), cm("wrong", "apply-order=x")))...)
	in.HooksOnly = true
	expectMistake(t, in, "ConfigMap shop/first: annotation shop.example.com/run-on")
}
