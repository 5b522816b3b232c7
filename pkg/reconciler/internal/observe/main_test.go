// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

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
