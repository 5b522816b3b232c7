// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// tenant is a component that puts one object into a namespace that it shares with others.
func (b *bench) tenant(name, namespace string) *bench {
	tenant := *b
	tenant.name, tenant.inventory = name, v1alpha1.Inventory{}
	tenant.mustApply(configIn(name, namespace))
	return &tenant
}

func (b *bench) leave() {
	b.t.Helper()
	b.until("the deletion of "+b.name, func() bool {
		outcome, err := b.delete()
		if err != nil {
			b.t.Fatal(err)
		}
		return outcome.Done() || len(outcome.Waiting) == 1 && outcome.Waiting[0].Key.Kind == "Namespace"
	})
}

func TestASharedNamespaceGoesWithItsLastUser(t *testing.T) {
	b := newBench(t)
	exists := func(name string) bool {
		t.Helper()
		var namespace corev1.Namespace
		err := b.Get(t.Context(), client.ObjectKey{Name: name}, &namespace)
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return err == nil && namespace.DeletionTimestamp.IsZero()
	}
	shared := b.namespace + "-shared"
	creator, second, third := b.tenant("creator", shared), b.tenant("second", shared), b.tenant("third", shared)
	for _, tenant := range []*bench{creator, third, second} {
		if !exists(shared) {
			t.Fatalf("the namespace is gone before %s", tenant.name)
		}
		tenant.leave()
	}
	if exists(shared) {
		t.Error("the namespace stays")
	}

	// One that another client has made, and one with the proof of another namespace, stay.
	var proven corev1.Namespace
	if err := b.Get(t.Context(), client.ObjectKey{Name: b.namespace + "-proven"}, &proven); err == nil {
		t.Fatal("it exists")
	}
	last := b.tenant("last", b.namespace+"-proven")
	if err := b.Get(t.Context(), client.ObjectKey{Name: b.namespace + "-proven"}, &proven); err != nil || proven.Annotations[engineName+"/automatic"] == "" {
		t.Fatalf("%v, annotations %v", err, proven.Annotations)
	}
	for name, annotations := range map[string]map[string]string{
		"theirs": nil, "copied": {engineName + "/automatic": proven.Annotations[engineName+"/automatic"]},
	} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace + "-" + name, Annotations: annotations}}
		if err := b.Create(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
		b.tenant(name, namespace.Name).leave()
		if !exists(namespace.Name) {
			t.Errorf("%s, which no component has created, is gone", namespace.Name)
		}
	}
	last.leave()
}

// The last user leaves after the creator has seen the namespace in use, and before it gives the namespace up.
func TestANamespaceGoesWhoseUsersLeaveTogether(t *testing.T) {
	b := newBench(t)
	between := b.interpose(t, keyed(reconciler.ReconcilerOptions{}))
	shared := b.namespace + "-together"
	creator, second := b.tenant("creator", shared), b.tenant("second", shared)
	happened := between.before("PATCH /api/v1/namespaces/"+shared, second.leave)
	creator.leave()
	var namespace corev1.Namespace
	err := b.Get(t.Context(), client.ObjectKey{Name: shared}, &namespace)
	if client.IgnoreNotFound(err) != nil || !happened() || err == nil && namespace.DeletionTimestamp.IsZero() {
		t.Errorf("happened %t; the namespace: %v, %+v", happened(), err, namespace.ObjectMeta)
	}
}

// A namespace that a policy orphans loses the proof that a later component may delete it.
func TestANamespaceThatIsOrphanedByAPolicyStays(t *testing.T) {
	b := newBench(t)
	shared := b.namespace + "-kept"
	creator := b.tenant("creator", shared)
	for i := range creator.inventory.Items {
		if item := &creator.inventory.Items[i]; item.Kind == "Namespace" {
			item.DeletePolicy = v1alpha1.DeletePolicyOrphan
		}
	}
	creator.leave()
	b.tenant("second", shared).leave()
	var namespace corev1.Namespace
	if err := b.Get(t.Context(), client.ObjectKey{Name: shared}, &namespace); err != nil || !namespace.DeletionTimestamp.IsZero() {
		t.Errorf("%v, %+v", err, namespace.ObjectMeta)
	}
}

// A namespace that was created for another component is read when the component is installed, and when it is deleted.
func TestASharedNamespaceIsNotReadAtRest(t *testing.T) {
	b, recorder := ownsRecorded(t, keyed(reconciler.ReconcilerOptions{}))
	b.tenant("creator", "shared")
	second := b.tenant("second", "shared")
	if n := len(second.inventory.Items); n != 2 {
		t.Errorf("%d objects are recorded, want 2", n)
	}
	sent := len(recorder.Sent(http.MethodGet))
	second.mustApply(configIn("second", "shared"))
	for _, got := range recorder.Sent(http.MethodGet)[sent:] {
		if strings.Contains(got.Path, "/namespaces/shared") && strings.HasSuffix(got.Path, "/shared") {
			t.Errorf("sent %v", got)
		}
	}
}
