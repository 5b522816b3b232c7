// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/check"
)

func TestWhichActionForWhichState(t *testing.T) {
	const (
		created  = ReconcileActionCreated
		updated  = ReconcileActionUpdated
		deleted  = ReconcileActionDeleted
		resynced = ReconcileActionResynced
	)
	for _, tc := range []struct {
		name string
		facts
		want step
	}{
		// Opinionated, alive.
		{"new", facts{opinionated: true}, step{addBoth, created, removePending}},
		{"new, and others put a finalizer like ours on it", facts{opinionated: true, pending: true}, step{addBoth, created, removePending}},
		{"crashed between claim and success", facts{opinionated: true, hasFinalizer: true, pending: true}, step{action: created, remove: removePending}},
		{"failed at first, and changed meanwhile", facts{opinionated: true, hasFinalizer: true, pending: true, called: true}, step{action: created, remove: removePending}},
		{"handled, and the pending finalizer is still there", facts{opinionated: true, hasFinalizer: true, pending: true, called: true, handled: true}, step{remove: removePending}},
		{"handled and changed before the pending finalizer was removed", facts{opinionated: true, hasFinalizer: true, pending: true, called: true, handled: true, changed: true}, step{action: updated, remove: removePending}},
		{"after a restart", facts{opinionated: true, hasFinalizer: true}, step{action: resynced}},
		{"after a restart, failed", facts{opinionated: true, hasFinalizer: true, called: true}, step{action: resynced}},
		{"after a restart, given up", facts{opinionated: true, hasFinalizer: true, called: true, gaveUp: true}, step{}},
		{"handled", facts{opinionated: true, hasFinalizer: true, called: true, handled: true}, step{}},
		{"changed", facts{opinionated: true, hasFinalizer: true, called: true, handled: true, changed: true}, step{action: updated}},
		{"changed, and a resync is due", facts{opinionated: true, hasFinalizer: true, called: true, handled: true, changed: true, resync: true}, step{action: updated}},
		{"a resync is due", facts{opinionated: true, hasFinalizer: true, called: true, handled: true, resync: true}, step{action: resynced}},
		{"our finalizer was taken away", facts{opinionated: true, called: true, handled: true}, step{add: addFinalizer}},
		{"our finalizer was taken away with a change", facts{opinionated: true, called: true, handled: true, changed: true}, step{add: addFinalizer, action: updated}},
		{"our finalizer was taken away before success", facts{opinionated: true, called: true}, step{addBoth, created, removePending}},
		{"the first call was given up", facts{opinionated: true, hasFinalizer: true, pending: true, called: true, gaveUp: true}, step{}},
		{"the first call was given up, and a resync is due", facts{opinionated: true, hasFinalizer: true, pending: true, called: true, gaveUp: true, resync: true}, step{action: created, remove: removePending}},
		{"an update was given up", facts{opinionated: true, hasFinalizer: true, called: true, handled: true, changed: true, gaveUp: true}, step{}},
		{"an update was given up, and the pending finalizer is still there", facts{opinionated: true, hasFinalizer: true, pending: true, called: true, handled: true, changed: true, gaveUp: true}, step{remove: removePending}},
		{"an update was given up, and a resync is due", facts{opinionated: true, hasFinalizer: true, called: true, handled: true, changed: true, gaveUp: true, resync: true}, step{action: updated}},
		// Opinionated, being deleted.
		{"deleted before it was claimed", facts{opinionated: true, deleting: true}, step{}},
		{"deleted", facts{opinionated: true, deleting: true, hasFinalizer: true, called: true, handled: true}, step{action: deleted, remove: removeBoth}},
		{"deleted with a last change", facts{opinionated: true, deleting: true, hasFinalizer: true, called: true, handled: true, changed: true}, step{action: deleted, remove: removeBoth}},
		{"deleted while the process was down", facts{opinionated: true, deleting: true, hasFinalizer: true}, step{action: deleted, remove: removeBoth}},
		{"deleted before the first success", facts{opinionated: true, deleting: true, hasFinalizer: true, pending: true}, step{action: deleted, remove: removeBoth}},
		{"deleted, and only the pending finalizer is left", facts{opinionated: true, deleting: true, pending: true}, step{action: deleted, remove: removeBoth}},
		{"deletion delivered, finalizers not removed", facts{opinionated: true, deleting: true, hasFinalizer: true, called: true, deletionHandled: true}, step{remove: removeBoth}},
		{"deletion delivered, finalizers removed, another finalizer is left", facts{opinionated: true, deleting: true, called: true, deletionHandled: true}, step{}},
		{"deleted after our finalizer was taken away", facts{opinionated: true, deleting: true, called: true, handled: true}, step{action: deleted}},
		{"the deletion was given up", facts{opinionated: true, deleting: true, hasFinalizer: true, called: true, gaveUp: true}, step{}},
		{"the deletion was given up, and a resync is due", facts{opinionated: true, deleting: true, hasFinalizer: true, called: true, gaveUp: true, resync: true}, step{action: deleted, remove: removeBoth}},
		// Opinionated, gone.
		{"gone after its deletion was delivered", facts{opinionated: true, absent: true, called: true, deletionHandled: true}, step{}},
		{"gone, and never ours", facts{opinionated: true, absent: true}, step{}},
		{"gone without a deletion that we saw", facts{opinionated: true, absent: true, called: true, handled: true}, step{action: deleted}},
		{"gone during the first call, which failed", facts{opinionated: true, absent: true, called: true}, step{action: deleted}},
		{"out of sight with our finalizer", facts{opinionated: true, absent: true, hasFinalizer: true, called: true, handled: true}, step{action: deleted, remove: removeBoth}},
		{"not in the cache, deletion delivered, finalizers not removed", facts{opinionated: true, absent: true, hasFinalizer: true, called: true, deletionHandled: true}, step{remove: removeBoth}},
		// Plain.
		{"plain: new, or after a restart", facts{}, step{action: created}},
		{"plain: failed at first", facts{called: true}, step{action: created}},
		{"plain: handled", facts{called: true, handled: true}, step{}},
		{"plain: changed", facts{called: true, handled: true, changed: true}, step{action: updated}},
		{"plain: a resync is due", facts{called: true, handled: true, resync: true}, step{action: resynced}},
		{"plain: being deleted, held by others", facts{deleting: true, called: true, handled: true, changed: true}, step{action: updated}},
		{"plain: found while being deleted", facts{deleting: true}, step{action: created}},
		{"plain: gone", facts{absent: true, called: true, handled: true}, step{action: deleted}},
		{"plain: gone before the first call", facts{absent: true}, step{action: deleted}},
		{"plain: gone, delivered", facts{absent: true, called: true, deletionHandled: true}, step{}},
		{"plain: given up", facts{called: true, gaveUp: true}, step{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			check.Same(t, tc.want, classify(tc.facts))
		})
	}
}

// TestRulesOfClassificationHoldForEveryState goes through all states, possible or not.
func TestRulesOfClassificationHoldForEveryState(t *testing.T) {
	states := 0
	for bits := range 1 << 11 {
		bit := func(i int) bool { return bits>>i&1 == 1 }
		f := facts{bit(0), bit(1), bit(2), bit(3), bit(4), bit(5), bit(6), bit(7), bit(8), bit(9), bit(10)}
		s := classify(f)
		states++
		going := f.absent || f.deleting
		for rule, broken := range map[string]bool{
			"a finalizer is never put on what goes":                        s.add != addNothing && going,
			"a plain reconciler writes nothing":                            !f.opinionated && (s.add != addNothing || s.remove != removeNothing),
			"no call without a claim":                                      f.opinionated && !going && !f.hasFinalizer && s.add == addNothing && s.action != "",
			"what goes gets nothing but Deleted":                           f.opinionated && going && s.action != "" && s.action != ReconcileActionDeleted,
			"what stays is not Deleted":                                    !going && s.action == ReconcileActionDeleted,
			"Deleted comes once":                                           f.deletionHandled && s.action == ReconcileActionDeleted,
			"finalizers are not removed before Deleted":                    s.remove == removeBoth && !f.deletionHandled && s.action != ReconcileActionDeleted,
			"finalizers of an object that stays are not removed":           s.remove == removeBoth && !going,
			"the pending finalizer is removed only after success":          s.remove == removePending && !f.handled && s.action != ReconcileActionCreated,
			"what was handled is not Created":                              f.handled && s.action == ReconcileActionCreated,
			"Updated needs something to compare with":                      s.action == ReconcileActionUpdated && !(f.handled && f.changed),
			"what was given up rests until something changes":              f.gaveUp && !f.resync && s.action != "",
			"an object that was reported and is deleted is reported again": going && f.opinionated && f.called && !f.deletionHandled && !f.gaveUp && s.action != ReconcileActionDeleted,
			"what was never handled is not left alone":                     !going && !f.handled && !f.gaveUp && s.action == "",
			"nothing is done for what was handled and rests":               f.opinionated && !going && f.hasFinalizer && !f.pending && f.handled && !f.changed && !f.resync && s != step{},
			"a change that counts is reported unless it was given up":      !going && f.handled && f.changed && !f.gaveUp && s.action != ReconcileActionUpdated,
		} {
			if broken {
				t.Error(rule, fmt.Sprintf("%+v: %+v", f, s))
			}
		}
	}
	check.SameNamed(t, "states", 2048, states)
}

func TestWhatIsAChangeOfContent(t *testing.T) {
	replicas := func(n int32) appsv1.DeploymentSpec { return appsv1.DeploymentSpec{Replicas: &n} }
	object := func(content map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: content}
	}
	metadata := func(generation int64, version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Generation: generation, ResourceVersion: version}}
	}
	for _, tc := range []struct {
		name     string
		old, new client.Object
		want     bool
	}{
		{"nothing", configMap("1", "1", "a"), configMap("1", "2", "a"), false},
		{"data", configMap("1", "1", "a"), configMap("1", "2", "b"), true},
		{"binary data", &corev1.ConfigMap{}, &corev1.ConfigMap{BinaryData: map[string][]byte{"a": {1}}}, true},
		{"immutable", &corev1.Secret{}, &corev1.Secret{Immutable: new(true)}, true},
		{"metadata", configMap("1", "1", "a"), configMap("1", "2", "a", "example.com/x"), false},
		{"type", &corev1.ConfigMap{}, &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap"}}, false},
		{"spec", &appsv1.Deployment{Spec: replicas(1)}, &appsv1.Deployment{Spec: replicas(2)}, true},
		{"equal spec", &appsv1.Deployment{Spec: replicas(1)}, &appsv1.Deployment{Spec: replicas(1)}, false},
		{"status", &appsv1.Deployment{}, &appsv1.Deployment{Status: appsv1.DeploymentStatus{Replicas: 1}}, false},
		{"generation, which status may move, too", &appsv1.Deployment{}, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 2}}, false},
		{"rules", &rbacv1.Role{}, &rbacv1.Role{Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}}}}, true},
		{"nil and empty", &rbacv1.Role{}, &rbacv1.Role{Rules: []rbacv1.PolicyRule{}}, false},
		{"unstructured: spec", object(map[string]any{"spec": "a"}), object(map[string]any{"spec": "b"}), true},
		{"unstructured: status", object(map[string]any{"status": "a"}), object(map[string]any{"status": "b"}), false},
		{"unstructured: metadata", object(map[string]any{"metadata": "a"}), object(map[string]any{"metadata": "b"}), false},
		{"unstructured: a new field", object(map[string]any{}), object(map[string]any{"data": "b"}), true},
		{"metadata only: generation", metadata(1, "1"), metadata(2, "2"), true},
		{"metadata only: same generation", metadata(1, "1"), metadata(1, "2"), false},
		{"metadata only: no generation", metadata(0, "1"), metadata(0, "2"), true},
		{"metadata only: nothing", metadata(0, "1"), metadata(0, "1"), false},
		{"unexported fields: a change", &shy{Spec: inner{1}}, &shy{Spec: inner{2}}, true},
		{"unexported fields: no change", &shy{Spec: inner{1}}, &shy{Spec: inner{1}}, false},
		{"another type", &corev1.ConfigMap{}, &corev1.Secret{}, true},
	} {
		check.SameNamed(t, tc.name, tc.want, ContentChanged(tc.old, tc.new))
	}
}

// shy is an object that not every comparison bears.
type shy struct {
	corev1.ConfigMap
	Spec inner
}

type inner struct{ n int }

func TestActionsAndVerbs(t *testing.T) {
	for action, verb := range map[ReconcileAction]ResourceAction{
		ReconcileActionCreated: ResourceActionCreate, ReconcileActionUpdated: ResourceActionUpdate, ReconcileActionDeleted: ResourceActionDelete,
	} {
		if ResourceActionFromReconcile(action) != verb || ReconcileActionFromResource(verb) != action {
			t.Errorf("%s and %s do not belong together", action, verb)
		}
	}
	if ResourceActionFromReconcile(ReconcileActionResynced) != "" || ResourceActionFromReconcile(ReconcileActionUnknown) != "" || ReconcileActionFromResource("CONNECT") != ReconcileActionUnknown {
		t.Error("there is a verb for what has none")
	}
}
