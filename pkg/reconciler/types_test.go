// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"maps"
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

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/env"
)

func TestForeignInstancesProtectTheirType(t *testing.T) {
	b := newBench(t)
	crd := definition("guards", "Guard")
	ours := instance("Guard", "ours")
	b.until("the type and its instance", func() bool {
		outcome, err := b.apply(crd, ours)
		if err != nil {
			t.Fatal(err)
		}
		return outcome.Done()
	})
	theirs := instance("Guard", "theirs")
	theirs.SetNamespace(b.namespace)
	if err := b.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}

	blockers, err := b.engine.DeletionBlockers(t.Context(), reconciler.DeleteRequest{Owner: b.owner(), Inventory: b.inventory})
	if err != nil || len(blockers) != 1 || !strings.Contains(blockers[0].Message, b.namespace+"/theirs") {
		t.Fatalf("blockers %v, %v, want the foreign instance", blockers, err)
	}
	// Also without that question the type must not be deleted.
	outcome, err := b.delete()
	if err != nil || outcome.Done() || outcome.Waiting[0].Reason != report.WaitBlocked {
		t.Fatalf("delete: %v, waiting for %v, want it to be blocked", err, outcome.Waiting)
	}
	if err := b.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil {
		t.Fatalf("the foreign instance: %v", err)
	}

	if err := b.Delete(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	b.until("the deletion", func() bool {
		outcome, err := b.delete()
		if err != nil {
			t.Fatal(err)
		}
		return outcome.Done()
	})
	if err := b.Get(t.Context(), client.ObjectKeyFromObject(crd), crd.DeepCopy()); !apierrors.IsNotFound(err) {
		t.Errorf("the type is still there: %v", err)
	}
}

// until repeats a check until it is true.
func (b *bench) until(what string, check func() bool) {
	b.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !check() {
		if time.Now().After(deadline) {
			b.t.Fatalf("waited a minute for %s", what)
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

func TestAnObjectThatMovesToAnotherGroupStays(t *testing.T) {
	b := newBench(t)
	event := func(apiVersion string, fields map[string]any) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion, "kind": "Event", "eventTime": "2026-01-01T00:00:00.000000Z",
			"action": "Install", "reason": "Installed", "type": "Normal", "reportingInstance": "corbel-0",
		}}
		object.SetNamespace(b.namespace)
		object.SetName("a")
		maps.Copy(object.Object, fields)
		return object
	}
	about := map[string]any{"apiVersion": "v1", "kind": "Namespace", "name": b.namespace, "namespace": b.namespace}
	b.mustApply(config("other", "1"), event("v1", map[string]any{"involvedObject": about, "reportingComponent": "example.com/corbel"}))
	uid := b.inventory.Items[1].UID
	moved := event("events.k8s.io/v1", map[string]any{"regarding": about, "reportingController": "example.com/corbel"})
	for range 2 {
		outcome := b.mustApply(config("other", "1"), moved)
		if items := b.inventory.Items; outcome.Steps["delete"] > 0 || len(items) != 2 || items[1].Group != "events.k8s.io" || items[1].UID != uid {
			t.Fatalf("steps %v, on record %+v", outcome.Steps, items)
		}
	}
	if outcome, err := b.delete(); err != nil || !outcome.Done() {
		t.Fatalf("delete: %v, waiting for %v", err, outcome.Waiting)
	}
	if err := b.Get(t.Context(), client.ObjectKeyFromObject(moved), moved); !apierrors.IsNotFound(err) {
		t.Errorf("it was not deleted: %v", err)
	}
}

// While a definition is being deleted, the server lets no instance be created. What it says then is not remembered.
func TestATypeThatIsDefinedAgainIsForDependentObjects(t *testing.T) {
	b := newBench(t)
	crd, object := definition("returns", "Return"), b.in(instance("Return", "a"))
	held := b.in(instance("Return", "held")) // the definition waits for it
	held.SetFinalizers([]string{"example.com/held"})
	b.create(crd)
	b.create(held)
	if err := b.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	asked, err := discovery.NewDiscoveryClientForConfig(env.Shared(t).Config())
	if err != nil {
		t.Fatal(err)
	}
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
	if err := b.Patch(t.Context(), held, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	b.until("the definition to be gone", func() bool {
		return apierrors.IsNotFound(b.Get(t.Context(), client.ObjectKeyFromObject(crd), crd.DeepCopy()))
	})
	b.create(definition("returns", "Return"))
	b.until("the instance to be applied", func() bool { _, err := b.apply(object); return err == nil })
}
