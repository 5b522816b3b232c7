// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{})) }

const reconciler = "corbel.example.com"

func targetOn(t *testing.T, config *rest.Config) cluster.Target {
	t.Helper()
	target, err := cluster.New(config, cluster.Options{RequestTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	return target
}

func observerOn(target cluster.Target) *observe.Observer {
	return observe.New(target, observe.Options{Name: reconciler, FieldOwner: "corbel"})
}

var counter atomic.Int64

func unique(prefix string) string { return fmt.Sprintf("%s-%d", prefix, counter.Add(1)) }

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(content); err != nil {
		t.Fatal(err)
	}
	return object
}

// create creates an object, as soon as the server is ready for it, and deletes
// it after the test if it does not live in a namespace.
func create(t *testing.T, target cluster.Target, text string) *unstructured.Unstructured {
	t.Helper()
	object := parse(t, text)
	var created *unstructured.Unstructured
	eventually(t, "the object is created", func() bool {
		resource, err := target.Types().Resolve(t.Context(), object.GroupVersionKind())
		if err != nil {
			return false
		}
		created, err = target.Objects().Create(t.Context(), resource, object, "corbel")
		return err == nil
	})
	if created.GetNamespace() == "" {
		t.Cleanup(func() { remove(t, target, created) })
	}
	return created
}

func remove(t *testing.T, target cluster.Target, object *unstructured.Unstructured) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	resource, err := target.Types().Resolve(ctx, object.GroupVersionKind())
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = target.Objects().Delete(ctx, resource, object.GetNamespace(), object.GetName(), object.GetUID(), "", metav1.DeletePropagationBackground)
	if err != nil && !cluster.IsNotFound(err, resource, object.GetName()) && !apierrors.IsConflict(err) {
		t.Error(err) // and not: the object, or this one of its name, is gone
	}
}

func keyOf(object *unstructured.Unstructured) plan.Key {
	gvk := object.GroupVersionKind()
	return plan.Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// batch observes one object.
func batch(t *testing.T, observer *observe.Observer, request observe.Request) plan.Observation {
	t.Helper()
	observed, err := observer.Observe(t.Context(), []observe.Request{request})
	if err != nil {
		t.Fatal(err)
	}
	observation, ok := observed[request.Key]
	if !ok {
		t.Fatalf("%s is missing in %v", request.Key, observed)
	}
	return observation
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 30 seconds", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// definition returns a CustomResourceDefinition of kind Foo in the group.
func definition(group, scope, schema string) string {
	return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foos.` + group + `}
spec:
  group: ` + group + `
  scope: ` + scope + `
  names: {kind: Foo, plural: foos}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: ` + schema + `}, subresources: {status: {}}}]`
}
