// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

// until repeats a check until it is true.
func (b *bench) until(what string, check func() bool) {
	b.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !check() {
		if time.Now().After(deadline) {
			b.t.Fatalf("waited two minutes for %s", what)
		}
		select {
		case <-b.t.Context().Done():
			b.t.Fatal(b.t.Context().Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func definition(plural, kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + ".engine.corbel.run"},
		"spec": map[string]any{
			"group": "engine.corbel.run", "scope": "Namespaced",
			"names": map[string]any{"plural": plural, "singular": strings.ToLower(kind), "kind": kind, "listKind": kind + "List"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
}

func instance(kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "engine.corbel.run/v1", "kind": kind, "metadata": map[string]any{"name": name},
	}}
}

// While a definition is being deleted, the server lets no instance be created. What it says then is not remembered.
func TestATypeThatIsDefinedAgainIsForDependentObjects(t *testing.T) {
	b := newBench(t)
	crd, object := definition("returns", "Return"), b.in(instance("Return", "a"))
	held := b.in(instance("Return", "held")) // the definition waits for it
	held.SetFinalizers([]string{"example.com/held"})
	b.create(crd)
	b.create(held)
	check.NoError(t, b.Delete(t.Context(), crd))
	asked := check.Must(discovery.NewDiscoveryClientForConfig(env.Shared(t).Config()))(t)
	b.until("the server to offer no creation", func() bool {
		list, err := asked.ServerResourcesForGroupVersion("engine.corbel.run/v1")
		if err != nil {
			return false
		}
		i := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == "Return" })
		return i >= 0 && !slices.Contains(list.APIResources[i].Verbs, "create")
	})
	if _, err := b.apply(object); err == nil || !strings.Contains(err.Error(), "type engine.corbel.run/v1 Return is not for dependent objects") {
		t.Fatalf("got %v", err)
	}
	check.NoError(t, b.Patch(t.Context(), held, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	b.until("the definition to be gone", func() bool {
		return apierrors.IsNotFound(b.Get(t.Context(), client.ObjectKeyFromObject(crd), crd.DeepCopy()))
	})
	b.create(definition("returns", "Return"))
	b.until("the instance to be applied", func() bool { _, err := b.apply(object); return err == nil })
}
