// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/check"
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
		outcome := check.Must(b.delete())(b.t)
		return outcome.Done() || len(outcome.Waiting) == 1 && outcome.Waiting[0].Key.Kind == "Namespace"
	})
}

func TestASharedNamespaceGoesWithItsLastUser(t *testing.T) {
	b := newBench(t)
	shared := b.namespace + "-shared"
	creator, second, third := b.tenant("creator", shared), b.tenant("second", shared), b.tenant("third", shared)
	for _, tenant := range []*bench{creator, third, second} {
		if !b.stands(namespaceOf(shared)) {
			t.Fatalf("the namespace is gone before %s", tenant.name)
		}
		tenant.leave()
	}
	if b.stands(namespaceOf(shared)) {
		t.Error("the namespace stays")
	}
}

// The last user leaves after the creator has seen the namespace in use, and before it gives the namespace up.
func TestANamespaceGoesWhoseUsersLeaveTogether(t *testing.T) {
	b := newBench(t)
	shared := b.namespace + "-together"
	creator, second := b.tenant("creator", shared), b.tenant("second", shared)
	happened := b.traffic.before("PATCH /api/v1/namespaces/"+shared, second.leave)
	creator.leave()
	if stays := b.stands(namespaceOf(shared)); stays || !happened() {
		t.Errorf("happened %t; the namespace stays: %t", happened(), stays)
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
	if !b.stands(namespaceOf(shared)) {
		t.Error("the namespace is gone")
	}
}

// A namespace that was created for another component is read when the component is installed, and when it is deleted.
func TestASharedNamespaceIsNotReadAtRest(t *testing.T) {
	b, recorder := ownsRecorded(t, keyed(reconciler.ReconcilerOptions{}))
	b.tenant("creator", "shared")
	second := b.tenant("second", "shared")
	check.SameNamed(t, "objects are recorded", 2, len(second.inventory.Items))
	sent := len(recorder.Sent(http.MethodGet))
	second.mustApply(configIn("second", "shared"))
	for _, got := range recorder.Sent(http.MethodGet)[sent:] {
		if strings.Contains(got.Path, "/namespaces/shared") && strings.HasSuffix(got.Path, "/shared") {
			t.Errorf("sent %v", got)
		}
	}
}
