// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

const rollbackTo = operatorName + "/" + vocabulary.AnnotationRollbackTo

// rollBack sets the annotation that asks for a rollback; 0 removes it.
func (b *bed) rollBack(revision int64) {
	b.Helper()
	b.update(func(w *widget.Widget) {
		if w.Annotations == nil {
			w.Annotations = map[string]string{}
		}
		if w.Annotations[rollbackTo] = strconv.FormatInt(revision, 10); revision == 0 {
			delete(w.Annotations, rollbackTo)
		}
	})
}

// setValues replaces the values of the component, and waits until they are applied.
func (b *bed) setValues(values map[string]string) *widget.Widget {
	b.Helper()
	b.update(func(w *widget.Widget) { w.Spec.Values = values })
	return b.untilGeneration()
}

// results returns the history as "revision result" with the revision that was rolled back to.
func results(w *widget.Widget) []string {
	var texts []string
	for _, entry := range w.Status.History {
		text := strconv.FormatInt(entry.Revision, 10) + " " + string(entry.Result)
		if entry.RollbackTo != 0 {
			text += " to " + strconv.FormatInt(entry.RollbackTo, 10)
		}
		texts = append(texts, text)
	}
	return texts
}

// untilRevision reconciles until the revision is ready.
func (b *bed) untilRevision(revision int64) (w *widget.Widget) {
	b.Helper()
	b.eventually(fmt.Sprint("revision ", revision), func() error {
		var err error
		w, _, err = b.reconcile()
		if state, reason, message := w.Status.GetState(); w.Status.Revision != revision || state != v1alpha1.StateReady {
			return fmt.Errorf("revision %d, %s, %s: %s; %w", w.Status.Revision, state, reason, message, err)
		}
		return nil
	})
	return w
}

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
	b.wantNoWrites("writes while it waits")
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
			b.restartWith(manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{Revisions: component.RevisionOptions{RequireApproval: true}})
		}
		b.check(b.client.Update(t.Context(), &corev1.ConfigMap{ObjectMeta: b.object("a"), Data: map[string]string{"value": "drifted"}}))
		b.waiting(2)
		if value, _ := b.configMap("a"); value != "1" {
			t.Errorf("config map a is %q (restart: %t)", value, restart)
		}
	}
	b.wantNone("c")

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
	b.remove()
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

// A pending revision with random values takes no room in the history, and can be replaced by another one
// without a warning; repairs meanwhile are reported.
func TestAPendingRevisionWithRandomValuesLeavesTheHistoryAsItIs(t *testing.T) {
	random := templated(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: core}\nstringData: {password: '{{ randAlphaNum 20 }}', color: {{ .Values.values.color }}}\n")
	options := component.ReconcilerOptions{Revisions: component.RevisionOptions{RevisionHistoryLimit: new(2)}}
	b := newReady(t, random, widget.Spec{Values: map[string]string{"color": "red"}}, options)
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

// fragile is configMaps with a Secret, which fails or renders an invalid object if the values ask for it.
func fragile(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
	spec := parameters.(*widget.Spec)
	if spec.Values["fails"] != "" {
		return nil, errors.New("the template fails")
	}
	objects, err := configMaps(ctx, namespace, name, parameters)
	for _, object := range objects {
		if object.GetName() == "invalid" {
			object.SetAnnotations(map[string]string{operatorName + "/apply-ordr": "1"})
		}
	}
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: "rendered"}, StringData: map[string]string{"size": spec.Settings.Data()["size"]},
	}
	return append(objects, secret), err
}

// found returns the config maps a to c, and whether the secret is there.
func (b *bed) found() map[string]string {
	b.Helper()
	objects := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		if value, exists := b.configMap(name); exists {
			objects[name] = value
		}
	}
	if err := b.client.Get(b.Context(), b.key("rendered"), &corev1.Secret{}); err == nil {
		objects["rendered"] = ""
	}
	return objects
}

// damage is what other clients do.
func (b *bed) damage() {
	b.Helper()
	b.check(b.client.Update(b.Context(), &corev1.ConfigMap{ObjectMeta: b.object("a"), Data: map[string]string{"value": "drifted"}}))
	b.check(b.client.Delete(b.Context(), &corev1.ConfigMap{ObjectMeta: b.object("b")}))
	b.check(b.client.Delete(b.Context(), &corev1.Secret{ObjectMeta: b.object("rendered")}))
}

func TestWhatWasAppliedLastIsRepairedWhileThereIsNothingNew(t *testing.T) {
	values := func(more string) func(*bed) {
		return func(b *bed) {
			b.update(func(w *widget.Widget) { w.Spec.Values = map[string]string{"a": "2", "c": "1", more: "1"} })
		}
	}
	tests := []struct {
		name     string
		fail     func(*bed)
		options  component.ReconcilerOptions
		state    v1alpha1.State
		reason   string
		revision int64
		// forgets: another process repairs nothing.
		forgets bool
	}{
		{name: "an object is invalid", fail: values("invalid"), state: v1alpha1.StateError, reason: vocabulary.ReasonInvalid, revision: 2},
		{name: "the generator fails", fail: values("fails"), state: v1alpha1.StateError, reason: vocabulary.ReasonError, revision: 2},
		{name: "the history keeps nothing", fail: values("fails"), options: component.ReconcilerOptions{Revisions: component.RevisionOptions{RevisionHistoryLimit: new(0)}},
			state: v1alpha1.StateError, reason: vocabulary.ReasonError, revision: 2, forgets: true},
		{name: "the plan to approve fails", fail: func(b *bed) {
			b.annotate(map[string]string{operatorName + "/require-approval": "true"})
			values("fails")(b)
		},
			state: v1alpha1.StateError, reason: vocabulary.ReasonError, revision: 1},
		{name: "a patch names a Secret", state: v1alpha1.StateError, reason: vocabulary.ReasonSpecInvalid, revision: 2, fail: func(b *bed) {
			b.update(func(w *widget.Widget) {
				w.Spec.Values = map[string]string{"a": "2", "c": "1"}
				w.Spec.Patches = []v1alpha1.Patch{{Patch: `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "rendered", "labels": {"a": "b"}}}`}}
			})
		}},
		{name: "a reference is missing", state: v1alpha1.StatePending, reason: vocabulary.ReasonRetrying, revision: 1, fail: func(b *bed) {
			b.check(b.client.Delete(b.Context(), &corev1.ConfigMap{ObjectMeta: b.object("settings")}))
			for _, value := range []string{"2", "3"} { // the spec changes, and once more
				b.update(func(w *widget.Widget) { w.Spec.Values = map[string]string{"a": value, "c": "1"} })
				b.reconcile()
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t, manifests.GeneratorFunc(fragile), test.options)
			b.check(b.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: b.object("settings"), Data: map[string]string{"size": "3"}}))
			b.create(widget.Spec{Values: map[string]string{"a": "1", "b": "1"}, Settings: &component.ConfigMapReference{Name: "settings"}})
			b.until(v1alpha1.StateReady)
			applied := b.found()
			test.fail(b)
			for _, restart := range []bool{false, true, false} {
				if restart {
					b.restartWith(manifests.GeneratorFunc(fragile), test.options)
				}
				b.damage()
				damaged := b.found()
				w, _, _ := b.reconcile()
				want := applied
				if restart && test.forgets {
					want = damaged
				}
				if diff := cmp.Diff(want, b.found()); diff != "" {
					t.Fatalf("restart: %t (-want +got):\n%s", restart, diff)
				}
				state, reason, message := w.Status.GetState()
				if repairs := strings.HasSuffix(message, "; until then, what was applied last is repaired"); state != test.state || reason != test.reason ||
					w.Status.Revision != test.revision || repairs != !cmp.Equal(want, damaged) {
					t.Fatalf("%s, %s, revision %d: %s", state, reason, w.Status.Revision, message)
				}
				b.resetRequests()
				b.reconcile()
				b.wantNoWrites("writes at rest")
				if restart && test.forgets {
					return
				}
			}
		})
	}
}

func TestWhatWasAppliedLastIsRepairedAsSoonAsItIsChanged(t *testing.T) {
	b := newReady(t, manifests.GeneratorFunc(fragile), widget.Spec{Values: map[string]string{"a": "1", "b": "1"}}, component.ReconcilerOptions{})
	applied := b.found()
	b.update(func(w *widget.Widget) { w.Spec.Values = map[string]string{"a": "2", "invalid": "1"} })
	b.start(b.manager)
	for range 2 {
		b.eventually("the failure to be reported", func() error {
			if _, reason, message := b.get().Status.GetState(); reason != vocabulary.ReasonInvalid {
				return errors.New(message)
			}
			return nil
		})
		b.damage()
		b.eventually("the repair", func() error {
			if diff := cmp.Diff(applied, b.found()); diff != "" {
				return errors.New(diff)
			}
			return nil
		})
	}
	b.update(func(w *widget.Widget) { w.Spec.Values = map[string]string{"a": "3", "c": "1"} })
	b.eventually("the new set", func() error {
		if diff := cmp.Diff(map[string]string{"a": "3", "c": "1", "rendered": ""}, b.found()); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

func TestThePolicyOfTheComponentCountsForWhatWasAppliedLast(t *testing.T) {
	b := newReady(t, manifests.GeneratorFunc(fragile), widget.Spec{Values: map[string]string{"a": "1", "b": "1"}}, component.ReconcilerOptions{})
	b.update(func(w *widget.Widget) { w.Spec.Values["fails"], w.Spec.DriftPolicy = "1", v1alpha1.DriftPolicyIgnore })
	b.damage()
	damaged := b.found()
	for range 2 {
		b.reconcile()
		if diff := cmp.Diff(damaged, b.found()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}
