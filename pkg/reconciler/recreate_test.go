// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/check"
)

// withUpdatePolicy returns the manifest of an object with its update policy.
func withUpdatePolicy(object *unstructured.Unstructured, policy string) *unstructured.Unstructured {
	object = object.DeepCopy()
	object.SetAnnotations(map[string]string{engineName + "/update-policy": policy})
	return object
}

// uidOf returns the uid of the live object of a manifest; it is empty if there is none.
func (b *bench) uidOf(object *unstructured.Unstructured) types.UID {
	b.t.Helper()
	live := object.DeepCopy()
	if live.GetKind() != "PriorityClass" {
		live.SetNamespace(b.namespace)
	}
	if err := b.Get(b.t.Context(), client.ObjectKeyFromObject(live), live); client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	} else if err != nil {
		return ""
	}
	return live.GetUID()
}

// The server minds the range of ports in no dry run.
func TestNothingIsDeletedBeforeTheServerAcceptsTheNewObject(t *testing.T) {
	b := newBench(t)
	service := nodePort("web", 30190)
	b.mustApply(withUpdatePolicy(service, "recreate"))
	before := b.uidOf(service)
	check.Fails(t, check.ErrorOf(b.apply(withUpdatePolicy(nodePort("web", 8080), "recreate"))), "spec.ports[0].nodePort", "the live object stays")
	if after := b.uidOf(service); after != before {
		t.Errorf("the live object is %q, and was %q", after, before)
	}
	if outcome := b.mustApply(withUpdatePolicy(service, "recreate")); len(outcome.Steps) > 0 {
		t.Errorf("steps %v after the manifest was reverted", outcome.Steps)
	}
	if _, err := b.delete(); err != nil {
		t.Error(err)
	}
}

// The server refuses a second owner of a port, an address or the default priority.
// Those that the live object holds are free once it is deleted.
func TestWhatTheLiveObjectHoldsIsNoReasonAgainstTheNewOne(t *testing.T) {
	b := newBench(t)
	address := ""
	service := func(value string) *unstructured.Unstructured {
		object := nodePort("web", 30191)
		if address != "" {
			object.Object["spec"].(map[string]any)["clusterIP"] = address
		}
		object.Object["spec"].(map[string]any)["selector"] = map[string]any{"value": value}
		return object
	}
	class := func(value int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": map[string]any{"name": b.namespace},
			"value": value, "globalDefault": true,
		}}
	}
	b.mustApply(withUpdatePolicy(service("1"), "recreate"), withUpdatePolicy(class(1), "recreate-on-immutable"))
	web := &corev1.Service{}
	check.NoError(t, b.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "web"}, web))
	address = web.Spec.ClusterIP
	before, classBefore := b.uidOf(service("1")), b.uidOf(class(1))
	// The admission of the server learns of a deletion late: for a moment it still refuses
	// the new default priority because of the old one. A later reconcile creates it.
	deletions := 0
	b.until("both to be recreated", func() bool {
		outcome, err := b.apply(withUpdatePolicy(service("2"), "recreate"), withUpdatePolicy(class(2), "recreate-on-immutable"))
		if err != nil && !strings.Contains(err.Error(), "Only one default can exist") {
			t.Fatal(err)
		}
		deletions += outcome.Steps["delete"]
		return err == nil && outcome.Done()
	})
	check.SameNamed(t, "deletions that recreate both", 2, deletions)
	if b.uidOf(service("2")) == before || b.uidOf(class(2)) == classBefore {
		t.Error("they are as before")
	}
	live := &schedulingv1.PriorityClass{}
	if err := b.Get(t.Context(), client.ObjectKey{Name: b.namespace}, live); err != nil || !live.GlobalDefault || live.Value != 2 {
		t.Errorf("got %v, %v", live, err)
	}

	// A port of another Service is no port of this one.
	theirs := nodePort("theirs", 30192)
	theirs.SetNamespace(b.namespace)
	check.NoError(t, b.Create(t.Context(), theirs))
	kept := b.uidOf(service("2"))
	_, err := b.apply(withUpdatePolicy(nodePort("web", 30192), "recreate"), withUpdatePolicy(class(2), "recreate-on-immutable"))
	if err == nil || !strings.Contains(err.Error(), "already allocated") || b.uidOf(service("2")) != kept {
		t.Errorf("got %v, want an error, and the Service as it was", err)
	}
	if _, err := b.delete(); err != nil {
		t.Error(err)
	}
}

func TestRecreateOnImmutableRecreatesOnlyWhatTheServerRefusesToChange(t *testing.T) {
	const policy = "recreate-on-immutable"
	b := newBench(t)
	manifest := func(value string, fixed bool) client.Object {
		object := config("a", value, "update-policy", policy, "recreate-propagation", "orphan")
		object.Object["immutable"] = fixed
		return object
	}
	b.mustApply(manifest("1", false))
	before := b.get("a").UID
	b.mustApply(manifest("2", true))
	if live := b.get("a"); live.UID != before || live.Data["value"] != "2" {
		t.Errorf("after a change in place: %v", live)
	}
	outcome, err := b.apply(manifest("3", true))
	if err != nil || outcome.Steps["delete"] != 1 {
		t.Fatalf("steps %v, %v", outcome.Steps, err)
	}
	if len(outcome.Notes) != 1 || !strings.HasPrefix(outcome.Notes[0].Message, "recreated: ") || !strings.Contains(outcome.Notes[0].Message, "immutable") {
		t.Errorf("notes %v, want that the object is recreated, and why", outcome.Notes)
	}
	// There is no garbage collector here that would finish the deletion.
	live := b.get("a")
	if live == nil || live.UID != before || !slices.Equal(live.Finalizers, []string{metav1.FinalizerOrphanDependents}) {
		t.Fatalf("the object is %v, want that its dependents are orphaned", live)
	}
	b.change("a", func(c *corev1.ConfigMap) { c.Finalizers = nil })
	b.mustApply(manifest("3", true))
	if live := b.get("a"); live.UID == before || live.Data["value"] != "3" {
		t.Errorf("after the recreation: %v", live)
	}
}

// nodePort is the manifest of a Service with a fixed node port.
func nodePort(name string, port int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"type": "NodePort", "ports": []any{map[string]any{"port": int64(80), "nodePort": port}},
		},
	}}
}

func TestARenamedServiceGetsTheNodePortOfTheOldOne(t *testing.T) {
	for _, policy := range []string{"replace", "ssa-override"} {
		t.Run(policy, func(t *testing.T) {
			b := newBench(t)
			before, after := withUpdatePolicy(nodePort("old", 30177), policy), withUpdatePolicy(nodePort("new", 30177), policy)
			b.mustApply(before, config("a", "1"))
			outcome := b.mustApply(after, config("a", "1"))
			if b.uidOf(before) != "" || b.uidOf(after) == "" {
				t.Errorf("old: %q, new: %q, want only the new one", b.uidOf(before), b.uidOf(after))
			}
			if outcome.Steps["create"] != 1 || outcome.Steps["delete"] != 1 {
				t.Errorf("steps %v, want one creation and one deletion", outcome.Steps)
			}
			if outcome := b.mustApply(after, config("a", "1")); len(outcome.Steps) > 0 {
				t.Errorf("steps %v at rest", outcome.Steps)
			}
			b.mustDelete()
		})
	}
}
