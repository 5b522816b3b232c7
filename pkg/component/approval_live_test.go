// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// waiting reconciles until a revision waits for its approval, and returns the component.
func (b *bed) waiting(revision int64) *widget.Widget {
	b.Helper()
	w, _, _ := b.reconcile()
	state, reason, message := w.Status.GetState()
	if state != v1alpha1.StatePending || reason != vocabulary.ReasonApprovalRequired || w.Status.Approval == nil || w.Status.Approval.Revision != revision ||
		!strings.Contains(message, operatorName+"/approve: "+w.Status.Approval.Hash) {
		b.Fatalf("%s, %s: %s; %+v", state, reason, message, w.Status.Approval)
	}
	return w
}

func TestANewRevisionWaitsForTheApprovalOfItsPlan(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{Revisions: component.RevisionOptions{RequireApproval: true}})
	b.create(widget.Spec{Values: map[string]string{"a": "1", "b": "1"}})
	w := b.waiting(1)
	if !strings.Contains(w.Status.Approval.Summary, "2 created") {
		t.Errorf("%+v", w.Status.Approval)
	}
	b.resetRequests()
	b.waiting(1)
	if writes := b.writes(); len(writes) > 0 {
		t.Errorf("writes while it waits: %v", writes)
	}
	b.annotate(map[string]string{operatorName + "/" + vocabulary.AnnotationApprove: w.Status.Approval.Hash})
	w = b.until(v1alpha1.StateReady)
	if w.Status.Revision != 1 || w.Status.Approval != nil {
		t.Errorf("revision %d, %+v", w.Status.Revision, w.Status.Approval)
	}

	b.update(func(w *widget.Widget) { w.Spec.Values = map[string]string{"a": "2", "c": "1"} })
	plan := b.plan(component.PlanRequest[*widget.Widget]{})
	w = b.waiting(2)
	if approval := w.Status.Approval; approval.Hash != plan.Hash || approval.Summary != "1 created, 1 updated, 1 deleted" {
		t.Errorf("%+v; the plan has the hash %s", approval, plan.Hash)
	}
	if w.Status.Revision != 1 || w.Status.AppliedGeneration == w.Generation || w.Status.ObservedGeneration != w.Generation {
		t.Errorf("revision %d, applied generation %d, observed %d of %d", w.Status.Revision, w.Status.AppliedGeneration, w.Status.ObservedGeneration, w.Generation)
	}

	// The current revision is repaired, also by the next process.
	for _, restart := range []bool{false, true} {
		if restart {
			b.reconciler = component.NewReconciler[*widget.Widget](operatorName, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{Revisions: component.RevisionOptions{RequireApproval: true}})
			b.check(b.reconciler.SetupWithManager(newManager(t, b.env, b.user)))
		}
		b.check(b.client.Update(t.Context(), &corev1.ConfigMap{ObjectMeta: b.object("a"), Data: map[string]string{"value": "drifted"}}))
		b.waiting(2)
		if value, _ := b.configMap("a"); value != "1" {
			t.Errorf("config map a is %q (restart: %t)", value, restart)
		}
	}
	if _, exists := b.configMap("c"); exists {
		t.Error("the next revision was applied")
	}

	// Nothing goes wrong if another client removes the plan from the status.
	w.Status.Approval = nil
	w.ResourceVersion = b.get().ResourceVersion
	b.check(b.client.Status().Update(t.Context(), w))
	b.check(b.client.Update(t.Context(), &corev1.ConfigMap{ObjectMeta: b.object("a"), Data: map[string]string{"value": "drifted again"}}))
	w = b.waiting(2)

	// The approval of another plan is none.
	b.annotate(map[string]string{operatorName + "/" + vocabulary.AnnotationApprove: w.Status.Approval.Hash})
	b.update(func(w *widget.Widget) { w.Spec.Values["d"] = "1" })
	w = b.waiting(2)
	b.annotate(map[string]string{operatorName + "/" + vocabulary.AnnotationApprove: w.Status.Approval.Hash})
	w = b.untilRevision(2)
	var values []string
	for _, name := range []string{"a", "b", "c", "d"} {
		value, _ := b.configMap(name)
		values = append(values, value)
	}
	if diff := cmp.Diff([]string{"2", "", "1", "1"}, values); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"2 Ready", "1 Ready"}, results(w)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}

	// A rollback and a deletion need none.
	b.rollBack(1)
	b.untilRevision(3)
	b.rollBack(0)
	b.waiting(4)
	b.check(b.client.Delete(t.Context(), b.get()))
	b.untilGone()
}

func TestAForgedApprovalIsReplacedByTheTrueOne(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{Revisions: component.RevisionOptions{RequireApproval: true}})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	w := b.waiting(1)
	b.annotate(map[string]string{operatorName + "/" + vocabulary.AnnotationApprove: w.Status.Approval.Hash})
	b.untilRevision(1)
	b.update(func(w *widget.Widget) { w.Spec.Values["a"] = "2" })
	truth := *b.waiting(2).Status.Approval
	b.start(b.manager)
	for _, forge := range []func(*v1alpha1.PendingApproval){
		func(a *v1alpha1.PendingApproval) { a.Summary = "nothing changes" },
		func(a *v1alpha1.PendingApproval) { a.Hash, a.Revision = "0123456789abcdef0123", 7 },
	} {
		b.eventually("the forgery to be stored", func() error {
			w := b.get()
			forge(w.Status.Approval)
			return b.client.Status().Update(t.Context(), w)
		})
		b.eventually("the true approval", func() error {
			if diff := cmp.Diff(&truth, b.get().Status.Approval); diff != "" {
				return errors.New(diff)
			}
			return nil
		})
	}
}

func TestTheAnnotationDecidesWhetherApprovalIsRequired(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{Revisions: component.RevisionOptions{RequireApproval: true}})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.annotate(map[string]string{operatorName + "/" + vocabulary.AnnotationRequireApproval: "false"})
	b.until(v1alpha1.StateReady)
	b.annotate(map[string]string{operatorName + "/" + vocabulary.AnnotationRequireApproval: "maybe"})
	w, _, _ := b.reconcile()
	if _, reason, message := w.Status.GetState(); reason != vocabulary.ReasonSpecInvalid || !strings.Contains(message, `"maybe" must be "true" or "false"`) {
		t.Errorf("%s: %s", reason, message)
	}
}

// A pending revision with random values takes no room in the history, and can be replaced by another one
// without a warning; repairs meanwhile are reported.
func TestAPendingRevisionWithRandomValuesLeavesTheHistoryAsItIs(t *testing.T) {
	limit := 2
	b := newBed(t, registry(t), component.ReconcilerOptions{Revisions: component.RevisionOptions{RevisionHistoryLimit: &limit}})
	b.create(widget.Spec{Values: map[string]string{"color": "red"}})
	b.until(v1alpha1.StateReady)
	b.setValues(map[string]string{"color": "green"})
	author := b.get().Status.History[0].ChangedBy
	b.annotate(map[string]string{operatorName + "/" + vocabulary.AnnotationRequireApproval: "true"})
	for _, color := range []string{"blue", "white"} {
		b.update(func(w *widget.Widget) { w.Spec.Values = map[string]string{"color": color} })
		b.waiting(3)
	}
	b.check(b.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: b.object("core")}))
	b.waiting(3)
	b.wantEvent("Applied", "created 1 object")
	b.wantNoEvent("RandomValuesLost")

	b.annotate(map[string]string{operatorName + "/" + vocabulary.AnnotationApprove: "another"})
	if _, _, message := b.waiting(3).Status.GetState(); !strings.Contains(message, "another, which it has, is the hash of another plan") {
		t.Errorf("got %q", message)
	}
	b.rollBack(1)
	w := b.untilRevision(3)
	if diff := cmp.Diff([]string{"3 Ready to 1", "2 Ready"}, results(w)[:2]); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	b.rollBack(0)
	w = b.waiting(4)
	b.check(b.client.Patch(t.Context(), w, client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"`+operatorName+`/approve":"`+w.Status.Approval.Hash+`"}}}`)), client.FieldOwner("approver")))
	if w = b.untilRevision(4); w.Status.History[0].ChangedBy != author {
		t.Errorf("revision 4 was changed by %q, want the author of the spec, %q", w.Status.History[0].ChangedBy, author)
	}
}
