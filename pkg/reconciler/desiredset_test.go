// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/check"
)

// again applies what an earlier call has understood.
func (b *bench) again(desired *reconciler.DesiredSet) (reconciler.Outcome, error) {
	b.t.Helper()
	outcome, err := b.engine.Apply(b.t.Context(), reconciler.ApplyRequest{
		Owner: b.owner(), Desired: desired, Inventory: b.inventory, Record: b.record,
	})
	b.inventory = outcome.Inventory
	return outcome, err
}

func TestAnEqualDesiredSetIsReused(t *testing.T) {
	b := newBench(t)
	before := b.mustApply(config("a", "1")).Desired.Pack(nil)
	b.confidential = true
	if b.mustApply(config("a", "1")).Desired.Pack(before) == before {
		t.Error("that the objects are confidential is not noticed")
	}
	before = b.mustApply(config("a", "1")).Desired.Pack(nil)
	if b.mustApply(config("a", "1")).Desired.Pack(before) != before {
		t.Error("the same is packed once more")
	}
	if b.mustApply(config("a", "2")).Desired.Pack(before) == before {
		t.Error("another manifest is not noticed")
	}
	before = b.mustApply(config("a", "1")).Desired.Pack(nil)
	if b.mustApply(config("a", "1", "apply-order", "1")).Desired.Pack(before) == before {
		t.Error("another policy is not noticed")
	}
}

func TestADesiredSetBelongsToItsOwner(t *testing.T) {
	b, other := newBench(t), newBench(t)
	desired := b.mustApply(config("a", "1")).Desired
	if _, err := other.again(desired); !errors.Is(err, reconciler.ErrOutdated) {
		t.Errorf("got %v", err)
	}
	renamed := check.Must(reconciler.NewReconciler("other.corbel.run", reconciler.Target{Target: newTarget(t)}, reconciler.ReconcilerOptions{}))(t)
	if _, err := renamed.Apply(t.Context(), reconciler.ApplyRequest{Owner: b.owner(), Desired: desired, Inventory: b.inventory, Record: b.record}); !errors.Is(err, reconciler.ErrOutdated) {
		t.Errorf("a reconciler of another name: %v", err)
	}
	if other.get("a") != nil || len(other.inventory.Items) > 0 {
		t.Error("something was written or recorded")
	}
}

func TestADesiredSetIsValidUntilItsTypesAreServed(t *testing.T) {
	b := newLateType(t, "Tardy")
	desired := []client.Object{config("a", "1"), b.late("")}
	outcome, err := b.apply(desired...)
	if err != nil || outcome.Done() || outcome.Desired == nil {
		t.Fatalf("got %+v, %v", outcome, err)
	}
	again := outcome.Desired.Pack(nil)
	if outcome, err := b.again(again); err != nil || outcome.Done() {
		t.Fatalf("the type is not served yet: %+v, %v", outcome, err)
	}
	b.install("Namespaced")
	b.until("it to be noticed that the type is served", func() bool {
		_, err := b.again(again)
		return errors.Is(err, reconciler.ErrOutdated)
	})
	b.installed(desired...)
}

// A generator may copy what it reads into an object that is no Secret.
func TestSecretsThatAGeneratorHasReadAreNotReported(t *testing.T) {
	b := newBench(t)
	b.confidential = true
	object := config("c", "")
	object.Object["data"] = map[string]any{"x/" + canary: "1"}
	outcome, err := b.apply(object)
	const want = "ConfigMap %[1]s/c: the server refused it (Invalid, 422): data[...]: Invalid value"
	expect := func(err error) {
		t.Helper()
		if err == nil || strings.Contains(err.Error(), canary) || !strings.Contains(err.Error(), fmt.Sprintf(want, b.namespace)) {
			t.Errorf("got %v", err)
		}
	}
	if expect(err); outcome.Desired == nil {
		t.Fatalf("got %+v", outcome)
	}
	_, err = b.again(outcome.Desired.Pack(nil))
	expect(err)
}

func manifest(apiVersion, kind, name string, fields map[string]any) client.Object {
	object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": "shop", "name": name}}
	for field, value := range fields {
		object[field] = value
	}
	return &unstructured.Unstructured{Object: object}
}

func TestDiffOfTwoSetsOfManifests(t *testing.T) {
	type m = map[string]any
	workload := func(image string, replicas int64) client.Object {
		containers := []any{m{"name": "api", "image": image}}
		return manifest("apps/v1", "Deployment", "api", m{"spec": m{"replicas": replicas, "template": m{"spec": m{"containers": containers}}}})
	}
	const first, second = "correct-horse-battery", "staple-of-the-stable"
	before := []client.Object{
		workload("a:1", 1), manifest("v1", "ConfigMap", "gone", nil), manifest("v1", "ConfigMap", "same", m{"data": m{"x": "1"}}),
		manifest("v1", "Secret", "password", m{"stringData": m{"password": first}}),
	}
	after := []client.Object{
		workload("a:2", 1), manifest("v1", "ConfigMap", "new", nil), manifest("v1", "ConfigMap", "same", m{"data": m{"x": "1"}}),
		manifest("v1", "Secret", "password", m{"stringData": m{"password": second}}),
	}
	var lines []string
	for _, change := range reconciler.Diff(t.Context(), before, after) {
		line := fmt.Sprintf("%s %s", change.Class, change.Key)
		for _, field := range change.Fields {
			line += fmt.Sprintf(" %s: %s -> %s", field.Path, field.Old, field.New)
		}
		lines = append(lines, line)
	}
	text := strings.Join(lines, "\n")
	if strings.Contains(text, first) || strings.Contains(text, second) {
		t.Errorf("a value of a Secret is shown:\n%s", text)
	}
	want := []string{
		"Delete ConfigMap shop/gone", "Create ConfigMap shop/new",
		"RestartsPods Deployment shop/api spec.template.spec.containers[name=api].image: a:1 -> a:2",
		"Update Secret shop/password stringData.password: *** -> ***",
	}
	check.Equal(t, want, lines)
}
