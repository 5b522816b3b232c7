// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// release is one of two releases of an operator.
type release struct {
	*handler[*widget]
	engine  *fakeEngine
	events  *eventLog
	commits int
}

// namedLock is a lock of which nothing but the name is asked for.
type namedLock struct {
	resourcelock.Interface
	name string
}

func (l namedLock) Describe() string { return l.name }

func newRelease(t *testing.T, namespace, key, lease string, local client.Client) *release {
	t.Helper()
	engine := &fakeEngine{outcome: reconciler.Outcome{Inventory: someInventory}}
	h, log := testHandler(t, engine)
	h.digestKey, h.local, h.settings.operatorNamespace = fixedKey(key), local, namespace
	if lease != "" {
		h.settings.leaderLock = &LeaderLock{
			Interface: namedLock{name: namespace + "/" + lease}, now: h.now, renewed: h.now(), deadline: time.Hour,
		}
	}
	return &release{handler: h, engine: engine, events: log}
}

// reconcile reports whether the dependents were looked after, and whether the reconcile ended
// because of the other operator.
func (r *release) reconcile(t *testing.T, obj *widget) (applied, waits bool) {
	t.Helper()
	before := len(r.engine.applied)
	_, err := r.createOrUpdate(t.Context(), obj, func(context.Context) error { r.commits++; return nil })
	later, waits := errors.AsType[*lifecycle.RequeueError](err)
	if waits && later.After < otherOperatorDelay || err != nil && !waits {
		t.Fatalf("got %v", err)
	}
	return len(r.engine.applied) > before, waits
}

func checkReconcile(t *testing.T, what string, r *release, obj *widget, applied, conflict bool) {
	t.Helper()
	got, waits := r.reconcile(t, obj)
	if got != applied || waits == applied {
		t.Errorf("%s: applied %t, waits %t", what, got, waits)
	}
	condition := apimeta.FindStatusCondition(obj.GetStatus().Conditions, v1alpha1.ConditionOperatorConflict)
	if (condition != nil) != conflict {
		t.Errorf("%s: the condition is %v", what, condition)
	}
	if conflict && (!strings.Contains(condition.Message, "namespace red") || !strings.Contains(condition.Message, "namespace blue")) {
		t.Errorf("%s: the condition does not name both namespaces: %s", what, condition.Message)
	}
}

func leaseOf(holder string, renewed time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "red", Name: "leader"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &metav1.MicroTime{Time: renewed}},
	}
}

func TestAnOperatorWaitsAsLongAsTheLeaseOfAnotherIsHeld(t *testing.T) {
	local := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(leaseOf("red-0", time.Unix(990, 0))).Build()
	red, blue := newRelease(t, "red", "key of red", "leader", local), newRelease(t, "blue", "key of blue", "leader", local)
	obj := newWidget()
	checkReconcile(t, "the first one", red, obj, true, false)
	for range 2 {
		checkReconcile(t, "the second one", blue, obj, false, true)
	}
	if len(blue.events.lines) != 1 || !strings.Contains(blue.events.lines[0], "Warning|OperatorConflict|Reconcile|") || len(blue.engine.applied) > 0 {
		t.Errorf("events %v", blue.events.lines)
	}
	if _, err := blue.delete(t.Context(), deletedWidget(obj.GetStatus().Inventory), noCommit); err == nil || len(blue.engine.deleted) > 0 {
		t.Errorf("in deletion: %v", err)
	}
	// It would be set again within a minute.
	checkReconcile(t, "the first one goes on, and leaves the condition", red, obj, true, true)
	red.now = func() time.Time { return time.Now().Add(conflictLife) }
	checkReconcile(t, "the second one has not set the condition for a while", red, obj, true, false)
	checkReconcile(t, "the second one waits again", blue, obj, false, true)

	if err := errors.Join(
		local.Delete(t.Context(), leaseOf("red-0", time.Unix(990, 0))), local.Create(t.Context(), leaseOf("red-0", time.Unix(900, 0))),
	); err != nil {
		t.Fatal(err)
	}
	checkReconcile(t, "the first one is gone", blue, obj, true, false)
	if by := obj.GetStatus().Inventory.Operator; by == nil || by.Namespace != "blue" || by.Lease != "blue/leader" {
		t.Errorf("the inventory names %+v", by)
	}
}

func TestOperatorsWithoutLeasesReportThatTheyOverwriteEachOther(t *testing.T) {
	local := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
	red, blue := newRelease(t, "red", "key of red", "", local), newRelease(t, "blue", "key of blue", "", local)
	obj := newWidget()
	checkReconcile(t, "the first one", red, obj, true, false)
	checkReconcile(t, "the first one, at rest", red, obj, true, false)
	checkReconcile(t, "another one takes over", blue, obj, true, false)
	checkReconcile(t, "the first one is there", red, obj, true, true)
	checkReconcile(t, "it is sealed by the first one", red, obj, true, true)
	if len(red.events.lines) != 1 {
		t.Errorf("events %v", red.events.lines)
	}
	red.now = func() time.Time { return time.Now().Add(conflictLife) }
	checkReconcile(t, "the other one did nothing for a while", red, obj, true, false)
}

func TestAnOperatorWithANewKeyIsNoOtherOperator(t *testing.T) {
	local := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(leaseOf("red-0", time.Unix(990, 0))).Build()
	before, after := newRelease(t, "red", "key of red", "leader", local), newRelease(t, "red", "new key of red", "leader", local)
	obj := newWidget()
	checkReconcile(t, "before", before, obj, true, false)
	checkReconcile(t, "after", after, obj, true, false)
	checkReconcile(t, "before again", before, obj, true, false)
}

func TestAnotherKeyIsNoNewRevision(t *testing.T) {
	local := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
	obj := newWidget()
	for _, step := range []struct {
		what, namespace, key string
		size                 int
		applied              int64
		want                 int64
	}{
		{"it is installed", "red", "key of red", 0, 0, 1},
		{"another operator takes over during the installation", "blue", "key of blue", 0, 0, 1},
		{"the key is lost", "blue", "new key of blue", 0, 1, 1},
		{"the spec changes as well", "blue", "key after that", 1, 1, 2},
		{"the next one takes over before it is applied", "red", "key of red", 1, 1, 2},
		{"the spec changes while the one after that takes over", "blue", "key of blue", 2, 1, 3},
	} {
		obj.Status.ObservedGeneration, obj.Status.AppliedGeneration = obj.Generation, step.applied
		if obj.Spec.Size != step.size {
			obj.Generation, obj.Spec.Size = obj.Generation+1, step.size
		}
		checkReconcile(t, step.what, newRelease(t, step.namespace, step.key, "", local), obj, true, false)
		if got := obj.GetStatus().Revision; got != step.want {
			t.Errorf("%s: revision %d, want %d", step.what, got, step.want)
		}
	}
}

// What the engine gets and what is saved with the name of our key says nothing that was
// hashed with another one.
func TestWhatWasHashedWithAnotherKeyIsLeftOut(t *testing.T) {
	local := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
	item := v1alpha1.InventoryItem{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a", UID: "u", Digest: "manifest@revision", ObservedHash: "seen", AppliedHash: "accepted"}
	left := item
	left.Digest, left.ObservedHash, left.AppliedHash = "?@revision", "", ""
	obj := newWidget()
	obj.Status.Inventory = v1alpha1.Inventory{Format: v1alpha1.InventoryFormat, Items: []v1alpha1.InventoryItem{item}}
	for _, step := range []struct {
		what, key string
		want      v1alpha1.InventoryItem
	}{
		{"an earlier version has named no key", "old key", item},
		{"the same key", "old key", item},
		{"another key", "new key", left},
		{"the same key after that", "new key", left},
	} {
		r := newRelease(t, "red", step.key, "", local)
		r.engine.echo = true // as if the manifests were invalid
		checkReconcile(t, step.what, r, obj, true, false)
		for where, got := range map[string][]v1alpha1.InventoryItem{"request": r.engine.applied[0].Inventory.Items, "status": obj.Status.Inventory.Items} {
			if diff := cmp.Diff([]v1alpha1.InventoryItem{step.want}, got); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", step.what, where, diff)
			}
		}
		if me := (digest.Hasher{Key: []byte(step.key)}).ID(); obj.Status.Inventory.Operator.Key != me {
			t.Errorf("%s: the record names the key %s", step.what, obj.Status.Inventory.Operator.Key)
		}
	}
}
