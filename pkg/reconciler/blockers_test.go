// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/check"
)

// create creates an object that is not ours, as soon as its type is served, and
// deletes it after the test.
func (b *bench) create(object *unstructured.Unstructured) {
	b.t.Helper()
	b.until(object.GetKind()+" to be created", func() bool {
		err := b.Create(b.t.Context(), object)
		return err == nil || apierrors.IsAlreadyExists(err)
	})
	b.t.Cleanup(func() {
		if err := b.Delete(context.Background(), object); client.IgnoreNotFound(err) != nil {
			b.t.Log(err)
		}
	})
}

// in returns the object in the bench's namespace.
func (b *bench) in(object *unstructured.Unstructured) *unstructured.Unstructured {
	object.SetNamespace(b.namespace)
	return object
}

func (b *bench) blockers(patterns ...reconciler.TypeInfo) string {
	b.t.Helper()
	blockers := check.Must(b.engine.DeletionBlockers(b.t.Context(), reconciler.DeleteRequest{
		Owner: b.owner(), Inventory: b.inventory, ManagedTypes: patterns,
	}))(b.t)
	var lines []string
	for _, blocker := range blockers {
		lines = append(lines, blocker.Dependent+": "+blocker.Message)
	}
	return strings.Join(lines, "\n")
}

// The type appears at run time: an operator that the component installs makes it.
func TestForeignInstancesOfAdditionalTypesBlockDeletion(t *testing.T) {
	b := newBench(t)
	for _, pattern := range []reconciler.TypeInfo{
		{Group: "engine.corbel.run", Kind: "Late"}, {Group: "engine.corbel.run", Kind: "*"}, {Group: "*.corbel.run", Kind: "Late"},
	} {
		if got := b.blockers(pattern); strings.Contains(got, "Late") {
			t.Errorf("%v, before the type exists: %s", pattern, got)
		}
	}
	b.create(definition("lates", "Late"))
	b.create(b.in(instance("Late", "theirs")))
	for pattern, title := range map[reconciler.TypeInfo]string{
		{Group: "engine.corbel.run", Kind: "Late"}: "type Late.engine.corbel.run",
		{Group: "engine.corbel.run", Kind: "*"}:    `the types of group "engine.corbel.run"`,
		{Group: "*.corbel.run", Kind: "Late"}:      "type Late.*.corbel.run",
		{Group: "*.corbel.run", Kind: "*"}:         `the types of group "*.corbel.run"`,
	} {
		want := ": 1 foreign instance: Late " + b.namespace + "/theirs"
		if got := b.blockers(pattern); !strings.HasPrefix(got, title) || !strings.Contains(got, want) {
			t.Errorf("%v: got %q, want %q", pattern, got, want)
		}
	}
	for _, pattern := range []reconciler.TypeInfo{
		{Group: "other.corbel.run", Kind: "*"}, {Group: "*.engine.corbel.run", Kind: "*"},
		// Objects of these types are computed and never stored.
		{Group: "authentication.k8s.io", Kind: "*"}, {Group: "authorization.k8s.io", Kind: "*"},
	} {
		if got := b.blockers(pattern); got != "" {
			t.Errorf("%v: got %q", pattern, got)
		}
	}
}

func TestABrokenAggregatedServerBlocksOnlyOwnersWithAMatchingPattern(t *testing.T) {
	b := newBench(t)
	b.create(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1.broken.example.net"},
		"spec": map[string]any{
			"group": "broken.example.net", "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": "default", "name": "nowhere"},
		},
	}})
	b.until("the group to be listed", func() bool {
		return b.blockers(reconciler.TypeInfo{Group: "broken.example.net", Kind: "*"}) != ""
	})
	want := "type Any.*.example.net: the server cannot list the types of broken.example.net/v1 at the moment"
	check.Same(t, want, b.blockers(reconciler.TypeInfo{Group: "*.example.net", Kind: "Any"}))
	check.SameNamed(t, "others are blocked", "", b.blockers(reconciler.TypeInfo{Group: "*.example.org", Kind: "*"}, reconciler.TypeInfo{Group: "apps", Kind: "ControllerRevision"}))
}

func TestATypeOfWhichAnInstanceIsToBeOrphanedIsBlockedByForeignOnesOnly(t *testing.T) {
	b := newBench(t)
	kept := instance("Keepsake", "kept")
	kept.SetAnnotations(map[string]string{engineName + "/delete-policy": "orphan-on-delete"})
	b.installed(definition("keepsakes", "Keepsake"), kept, instance("Keepsake", "ours"))
	check.Same(t, "", b.blockers())
	b.create(b.in(instance("Keepsake", "theirs")))
	want := "CustomResourceDefinition keepsakes.engine.corbel.run: 1 foreign instance: Keepsake " + b.namespace + "/theirs"
	check.SameNamed(t, "with a foreign instance", want, b.blockers())
	want += "\ntype Keepsake.engine.corbel.run: 1 foreign instance: Keepsake " + b.namespace + "/theirs"
	check.SameNamed(t, "by a pattern", want, b.blockers(reconciler.TypeInfo{Group: "engine.corbel.run", Kind: "Keepsake"}))
}

func TestTypesOfOthersBlockNothing(t *testing.T) {
	b, recorder := ownsRecorded(t, reconciler.ReconcilerOptions{})
	const foos = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foos.example.com}
spec: {group: example.com, scope: Namespaced, names: {kind: Foo, plural: foos}, versions: [{name: v1, served: true, storage: true}]}`
	theirs := parse(t, foos)
	theirs.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "theirs"})
	recorder.Put(theirs)
	recorder.Put(parse(t, `{apiVersion: example.com/v1, kind: Foo, metadata: {name: used, namespace: shop}}`))
	_, err := b.apply(parse(t, foos))
	if _, refused := errors.AsType[*reconciler.OwnerConflictError](err); !refused {
		t.Fatalf("got %v, want that the type belongs to another owner", err)
	}
	if got := b.blockers(); len(b.inventory.Items) == 0 || got != "" {
		t.Errorf("recorded %v, blocked by %s", b.inventory.Items, got)
	}
}
