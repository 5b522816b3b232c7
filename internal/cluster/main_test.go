// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{})) }

// real returns a target on the package's API server.
func real(t *testing.T) cluster.Target {
	t.Helper()
	target := check.Must(cluster.New(env.Shared(t).Config(), cluster.Options{}))(t)
	t.Cleanup(target.Close)
	return target
}

var counter atomic.Int64

// unique returns a name that no other test uses.
func unique(prefix string) string { return fmt.Sprintf("%s-%d", prefix, counter.Add(1)) }

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	check.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
	return object
}

// resolve resolves the type of an object.
func resolve(t *testing.T, target cluster.Target, gvk schema.GroupVersionKind) cluster.Resource {
	t.Helper()
	resource := check.Must(target.Types().Resolve(t.Context(), gvk))(t)
	return resource
}

// create creates an object from YAML.
func create(t *testing.T, target cluster.Target, text string) (*unstructured.Unstructured, cluster.Resource) {
	t.Helper()
	object := parse(t, text)
	resource := resolve(t, target, object.GroupVersionKind())
	created := check.Must(target.Objects().Create(t.Context(), resource, object, "test"))(t)
	if !resource.Namespaced {
		t.Cleanup(func() {
			ctx := context.WithoutCancel(t.Context())
			_, _, err := target.Objects().Delete(ctx, resource, "", created.GetName(), created.GetUID(), "", metav1.DeletePropagationBackground)
			if err != nil && !cluster.IsNotFound(err, resource, created.GetName()) && !apierrors.IsConflict(err) {
				t.Error(err)
			}
		})
	}
	return created, resource
}

// newNamespace creates a namespace of the test's own.
func newNamespace(t *testing.T, target cluster.Target) string {
	t.Helper()
	name := unique("ns")
	create(t, target, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
	return name
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	env.Until(t, what, func() error {
		if !holds() {
			return errors.New("it is not so")
		}
		return nil
	})
}

// definition returns a CustomResourceDefinition of kind Foo in a group of its own.
func definition(group, versions string) string {
	return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foos.` + group + `}
spec:
  group: ` + group + `
  scope: Namespaced
  names: {kind: Foo, plural: foos}
  versions: ` + versions
}
