// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

// installed applies the objects until they are settled.
func (b *bench) installed(objects ...client.Object) {
	b.t.Helper()
	b.until("the objects to be settled", func() bool {
		outcome, err := b.apply(objects...)
		if err != nil {
			b.t.Fatal(err)
		}
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

// fences returns how many fences there are, ours and those of other tests.
func (b *bench) fences() (names []string) {
	b.t.Helper()
	var policies admissionv1.ValidatingAdmissionPolicyList
	var bindings admissionv1.ValidatingAdmissionPolicyBindingList
	if err := b.List(b.t.Context(), &policies, client.HasLabels{engineName + "/fence"}); err != nil {
		b.t.Fatal(err)
	}
	if err := b.List(b.t.Context(), &bindings, client.HasLabels{engineName + "/fence"}); err != nil {
		b.t.Fatal(err)
	}
	for _, policy := range policies.Items {
		names = append(names, policy.Name)
	}
	for _, binding := range bindings.Items {
		names = append(names, binding.Name)
	}
	return names
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

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"

// bothWays runs a test with and without the fence.
func bothWays(t *testing.T, test func(t *testing.T, fence bool)) {
	t.Run("with the fence", func(t *testing.T) { test(t, true) })
	t.Run("without the fence", func(t *testing.T) { test(t, false) })
}

// dropped is an upgrade to manifests without a definition.
type dropped struct {
	*bench
	*between
	definition, theirs *unstructured.Unstructured
}

func dropDefinition(t *testing.T, plural, kind string, fence bool) dropped {
	d := dropped{bench: newBench(t), definition: definition(plural, kind)}
	d.between = d.interpose(t, reconciler.ReconcilerOptions{TypeFence: fence})
	d.installed(d.definition, config("a", "1"))
	d.theirs = d.in(instance(kind, "theirs"))
	t.Cleanup(func() {
		if err := d.Delete(context.Background(), d.definition.DeepCopy()); client.IgnoreNotFound(err) != nil {
			t.Log(err)
		}
	})
	return d
}

func TestADefinitionDroppedOnUpgradeStaysWhileForeignInstancesExist(t *testing.T) {
	bothWays(t, func(t *testing.T, fence bool) {
		d := dropDefinition(t, "drops", "Drop", fence)
		d.create(d.theirs)
		outcome, err := d.apply(config("a", "2"))
		want := "1 foreign instance: Drop " + d.namespace + "/theirs"
		if err != nil || len(outcome.Waiting) != 1 || outcome.Waiting[0].Reason != reconciler.WaitBlocked || outcome.Waiting[0].Message != want {
			t.Errorf("got %v, waiting for %v, want %q", err, outcome.Waiting, want)
		}
		if !d.stands(d.definition) || !d.stands(d.theirs) {
			t.Error("the type or its instance is gone")
		}
		if left := d.fences(); len(left) > 0 {
			t.Errorf("fences left over: %v", left)
		}
		if d.get("a").Data["value"] != "2" {
			t.Error("the rest of the upgrade was held up")
		}
		if err := d.Delete(t.Context(), d.theirs); err != nil {
			t.Fatal(err)
		}
		d.installed(config("a", "2"))
		if d.stands(d.definition) || len(d.fences()) > 0 {
			t.Errorf("the type is still there: %v, fences: %v", d.stands(d.definition), d.fences())
		}
	})
}

func TestAnInstanceCreatedBetweenTheCheckAndTheDeletionOfItsTypeIsRefusedByTheFence(t *testing.T) {
	d := dropDefinition(t, "gaps", "Gap", true)
	var refused error
	happened := d.before("DELETE "+definitionsPath, func() { refused = d.Create(t.Context(), d.theirs.DeepCopy()) })
	outcome, err := d.apply(config("a", "1"))
	if err != nil || !happened() {
		t.Fatalf("got %v, the type was deleted: %v", err, happened())
	}
	if refused == nil || !strings.Contains(refused.Error(), "CustomResourceDefinition gaps.engine.corbel.run is being deleted by "+engineName) {
		t.Errorf("the instance was created, or not refused by the fence: %v", refused)
	}
	d.installed(config("a", "1"))
	if d.stands(d.definition) || len(d.fences()) > 0 || len(warnings(outcome)) > 0 {
		t.Errorf("the type is still there: %v, fences: %v, warnings: %v", d.stands(d.definition), d.fences(), warnings(outcome))
	}
}

func TestAnInstanceCreatedBeforeTheFenceHoldsBlocksTheDeletionOfItsType(t *testing.T) {
	d := dropDefinition(t, "races", "Race", true)
	happened := d.before("POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", func() { d.create(d.theirs) })
	outcome, err := d.apply(config("a", "1"))
	if err != nil || !happened() || len(outcome.Waiting) != 1 || outcome.Waiting[0].Reason != reconciler.WaitBlocked {
		t.Errorf("got %v, waiting for %v", err, outcome.Waiting)
	}
	if !d.stands(d.definition) || !d.stands(d.theirs) || len(d.fences()) > 0 {
		t.Errorf("type: %v, instance: %v, fences: %v", d.stands(d.definition), d.stands(d.theirs), d.fences())
	}
}

func TestAnInstanceCreatedBetweenTheCheckAndTheDeletionOfItsTypeIsReportedWithoutTheFence(t *testing.T) {
	d := dropDefinition(t, "losses", "Loss", false)
	happened := d.before("DELETE "+definitionsPath, func() { d.create(d.theirs) })
	outcome, err := d.apply(config("a", "1"))
	if err != nil || !happened() {
		t.Fatalf("got %v, the type was deleted: %v", err, happened())
	}
	want := "ForeignInstancesLost CustomResourceDefinition losses.engine.corbel.run: created while the type was being deleted, and lost with it: 1 foreign instance: Loss " + d.namespace + "/theirs"
	if got := warnings(outcome); len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAFenceLeftOverFromACrashIsRemovedByTheNextReconcile(t *testing.T) {
	d := dropDefinition(t, "crashes", "Crash", true)
	d.before("DELETE "+definitionsPath, func() { d.dead.Store(true) })
	if _, err := d.apply(config("a", "1")); err == nil {
		t.Fatal("we did not crash")
	}
	if left := d.fences(); len(left) != 2 {
		t.Fatalf("fences left over: %v, want a policy and its binding", left)
	}
	// The upgrade is reverted, so the type stays, and nothing may keep its instances away.
	d.interpose(t, reconciler.ReconcilerOptions{TypeFence: true})
	if _, err := d.apply(d.definition, config("a", "1")); err != nil {
		t.Fatal(err)
	}
	if left := d.fences(); len(left) > 0 {
		t.Errorf("fences left over: %v", left)
	}
	d.create(d.theirs)
}

func TestAFenceLeftOverFromACrashIsRemovedAlsoIfTheOptionIsSwitchedOff(t *testing.T) {
	d := dropDefinition(t, "switches", "Switch", true)
	d.before("DELETE "+definitionsPath, func() { d.dead.Store(true) })
	if _, err := d.apply(config("a", "1")); err == nil || len(d.fences()) != 2 {
		t.Fatalf("we did not crash, or there is no fence (%v)", err)
	}
	d.interpose(t, reconciler.ReconcilerOptions{})
	if _, err := d.apply(d.definition, config("a", "1")); err != nil {
		t.Fatal(err)
	}
	if left := d.fences(); len(left) > 0 {
		t.Errorf("fences left over: %v", left)
	}
}

func TestAFenceThatCouldNotBeRemovedIsRemovedByTheNextReconcile(t *testing.T) {
	d := dropDefinition(t, "remains", "Remain", true)
	d.before("DELETE /apis/admissionregistration.k8s.io/", func() { d.dead.Store(true) })
	if _, err := d.apply(config("a", "1")); err == nil || !strings.Contains(err.Error(), "remove the fence corbel-fence-") {
		t.Fatalf("got %v, want that the fence is still there", err)
	}
	if left := d.fences(); len(left) != 2 {
		t.Fatalf("fences left over: %v, want a policy and its binding", left)
	}
	d.dead.Store(false)
	d.installed(config("a", "1"))
	if left := d.fences(); len(left) > 0 || d.stands(d.definition) {
		t.Errorf("fences left over: %v, the type: %v", left, d.stands(d.definition))
	}
}

func TestANamespaceWithObjectsOfOthersIsNotDeleted(t *testing.T) {
	bothWays(t, func(t *testing.T, fence bool) {
		b := newBench(t)
		b.interpose(t, reconciler.ReconcilerOptions{TypeFence: fence})
		name := b.namespace + "-content"
		b.installed(namespaceOf(name), configIn("ours", name))
		theirs := configIn("theirs", name)
		b.create(theirs)
		outcome, err := b.delete()
		if err != nil || len(outcome.Waiting) != 1 || outcome.Waiting[0].Reason != reconciler.WaitBlocked ||
			!strings.Contains(outcome.Waiting[0].Message, "kubectl get configmaps --namespace "+name) {
			t.Errorf("got %v, waiting for %v", err, outcome.Waiting)
		}
		if !b.stands(namespaceOf(name)) || !b.stands(theirs) || len(b.fences()) > 0 {
			t.Errorf("namespace: %v, content: %v, fences: %v", b.stands(namespaceOf(name)), b.stands(theirs), b.fences())
		}
	})
}

func TestContentCreatedBetweenTheCheckAndTheDeletionOfItsNamespace(t *testing.T) {
	bothWays(t, func(t *testing.T, fence bool) {
		b := newBench(t)
		between := b.interpose(t, reconciler.ReconcilerOptions{TypeFence: fence})
		name := b.namespace + "-content"
		b.installed(namespaceOf(name))
		var err error
		happened := between.before("DELETE /api/v1/namespaces/"+name, func() { err = b.Create(t.Context(), configIn("theirs", name)) })
		outcome, failure := b.delete()
		if failure != nil || !happened() {
			t.Fatalf("got %v, the namespace was deleted: %v", failure, happened())
		}
		got := warnings(outcome)
		if fence {
			if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) || len(got) > 0 {
				t.Errorf("it was created, or not refused by the fence: %v, %v", err, got)
			}
		} else if want := "ForeignContentLost Namespace " + name + ": created while the namespace was being deleted, and lost with it: 1 object (configmaps)"; err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("got %v, %q, want %q", err, got, want)
		}
		if left := b.fences(); len(left) > 0 {
			t.Errorf("fences left over: %v", left)
		}
	})
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
