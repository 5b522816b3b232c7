// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/check"
)

// installed applies the objects until they are settled.
func (b *bench) installed(objects ...client.Object) {
	b.t.Helper()
	b.until("the objects to be settled", func() bool {
		outcome := check.Must(b.apply(objects...))(b.t)
		return outcome.Done()
	})
}

// stands reports whether the object exists and is not being deleted.
func (b *bench) stands(object *unstructured.Unstructured) bool {
	b.t.Helper()
	live := object.DeepCopy()
	err := b.Get(b.t.Context(), client.ObjectKeyFromObject(object), live)
	if client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
	return err == nil && live.GetDeletionTimestamp() == nil
}

// warnings are the notes of an outcome that are about harm.
func warnings(outcome reconciler.Outcome) (texts []string) {
	for _, note := range outcome.Notes {
		if note.Warning {
			texts = append(texts, note.Reason+" "+note.Key.String()+": "+note.Message)
		}
	}
	return texts
}

func TestAnInstanceCreatedBetweenTheCheckAndTheDeletionOfItsTypeIsReported(t *testing.T) {
	b := newBench(t)
	b.installed(definition("losses", "Loss"), config("a", "1"))
	happened := b.traffic.before("DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/", func() { b.create(b.in(instance("Loss", "theirs"))) })
	outcome, err := b.apply(config("a", "1"))
	if err != nil || !happened() {
		t.Fatalf("got %v, the type was deleted: %v", err, happened())
	}
	want := "ForeignInstancesLost CustomResourceDefinition losses.engine.corbel.run: created while the type was being deleted, and lost with it: 1 foreign instance"
	if got := warnings(outcome); len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestContentCreatedBetweenTheCheckAndTheDeletionOfItsNamespaceIsReported(t *testing.T) {
	b := newBench(t)
	name := b.namespace + "-content"
	b.installed(namespaceOf(name))
	happened := b.traffic.before("DELETE /api/v1/namespaces/"+name, func() { b.create(configIn("theirs", name)) })
	outcome, err := b.delete()
	if err != nil || !happened() {
		t.Fatalf("got %v, the namespace was deleted: %v", err, happened())
	}
	want := "ForeignContentLost Namespace " + name + ": created while the namespace was being deleted, and lost with it: 1 object (configmaps)"
	if got := warnings(outcome); len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func namespaceOf(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
}

// configIn returns a ConfigMap in another namespace than the bench's.
func configIn(name, namespace string) *unstructured.Unstructured {
	object := config(name, "1")
	object.SetNamespace(namespace)
	return object
}
