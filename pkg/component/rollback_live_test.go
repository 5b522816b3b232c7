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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

func TestARollbackAppliesTheManifestsOfAnEarlierRevision(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1", "b": "1", "c": "1"}})
	b.until(v1alpha1.StateReady)
	b.setValues(map[string]string{"a": "2", "b": "1", "d": "1"})

	b.rollBack(1)
	b.resetRequests()
	w := b.until(v1alpha1.StateReady)
	if w.Status.Revision == 2 { // it was ready before
		t.Fatalf("the rollback has no revision of its own: %v", results(w))
	}
	want := []string{"create configmaps c", "delete configmaps d", "patch secrets main-revisions", "update configmaps a"}
	if diff := cmp.Diff(want, without(b.writes(), "widgets/status")); diff != "" {
		t.Errorf("writes of the rollback (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"3 Ready to 1", "2 Ready", "1 Ready"}, results(w)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	_, _, message := w.Status.GetState()
	if !strings.Contains(message, "pinned to revision 1 by annotation "+rollbackTo) || w.Spec.Values["a"] != "2" {
		t.Errorf("%s; spec %v", message, w.Spec.Values)
	}

	// It stays pinned after a change of the spec and a restart, and at rest nothing is written.
	b.setValues(map[string]string{"a": "3"})
	b.restart(manifests.GeneratorFunc(configMaps))
	b.resetRequests()
	w, _, err := b.reconcile()
	if writes := b.writes(); err != nil || len(writes) > 0 || w.Status.Revision != 3 {
		t.Errorf("revision %d, writes %v, %v", w.Status.Revision, writes, err)
	}
	if value, _ := b.configMap("a"); value != "1" {
		t.Errorf("config map a is %q", value)
	}

	var differ []string
	for _, change := range must(b.reconciler.DiffRevisions(t.Context(), b.key("main"), 2, 3))(t) {
		line := string(change.Class) + " " + change.Key.Name
		for _, field := range change.Fields {
			line += fmt.Sprintf(" %s %s->%s", field.Path, field.Old, field.New)
		}
		differ = append(differ, line)
	}
	if diff := cmp.Diff([]string{"Update a data.value 2->1", "Create c", "Delete d"}, differ); diff != "" {
		t.Errorf("between the revisions (-want +got):\n%s", diff)
	}
	if _, err := b.reconciler.DiffRevisions(t.Context(), b.key("main"), 2, 9); err == nil || !strings.Contains(err.Error(), "revision 9 is not in its history") {
		t.Errorf("%v", err)
	}

	b.rollBack(0)
	w = b.untilRevision(4)
	if value, _ := b.configMap("a"); value != "3" {
		t.Errorf("config map a is %q without the annotation", value)
	}
	if _, _, message := w.Status.GetState(); strings.Contains(message, "pinned") {
		t.Error(message)
	}
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

// stateful is a generator whose later versions drop a volume and a namespace, and change a
// definition.
func stateful(_ context.Context, namespace, _ string, parameters types.Unstructurable) ([]client.Object, error) {
	values, _ := parameters.ToUnstructured()["values"].(map[string]any)
	group, second := strings.ReplaceAll(namespace, "-", "")+".example.com", ""
	if values["version"] != "1" {
		second = ", {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}"
	}
	objects := []client.Object{
		configMap("a", func(c *corev1.ConfigMap) { c.Data = map[string]string{"value": values["version"].(string)} }),
		read("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things." + group + "}, spec: {group: " + group +
			", scope: Namespaced, names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}, " +
			"versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}" + second + "]}}"),
	}
	if values["version"] == "2" {
		objects = append(objects, read("{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"-extra}}"),
			read("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, annotations: {"+operatorName+"/ready-when: 'true'}}, "+
				"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"))
	}
	return objects, nil
}

func TestARollbackDeletesNoVolumeAndNoNamespaceAndDowngradesNoDefinition(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(stateful), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"version": "1"}})
	b.until(v1alpha1.StateReady)
	b.setValues(map[string]string{"version": "2"})

	b.rollBack(1)
	w := b.untilRevision(3)
	_, _, message := w.Status.GetState()
	group := strings.ReplaceAll(b.namespace, "-", "") + ".example.com"
	for _, kept := range []string{
		"CustomResourceDefinition things." + group, "PersistentVolumeClaim " + b.namespace + "/data", "Namespace " + b.namespace + "-extra",
	} {
		if !strings.Contains(message, kept) {
			t.Errorf("the message does not name %s: %s", kept, message)
		}
	}
	if value, _ := b.configMap("a"); value != "1" {
		t.Errorf("config map a is %q", value)
	}
	data, extra := &corev1.PersistentVolumeClaim{}, &corev1.Namespace{}
	b.check(b.client.Get(t.Context(), b.key("data"), data))
	b.check(b.client.Get(t.Context(), client.ObjectKey{Name: b.namespace + "-extra"}, extra))
	if data.DeletionTimestamp != nil || extra.DeletionTimestamp != nil {
		t.Error("the volume or the namespace is being deleted")
	}
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	b.check(b.client.Get(t.Context(), client.ObjectKey{Name: "things." + group}, definition))
	if versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions"); len(versions) != 2 {
		t.Errorf("the definition has %d versions", len(versions))
	}

	// They are dependents still, and what they are needed for decides about them later.
	b.rollBack(0)
	b.update(func(w *widget.Widget) { w.Spec.Values["version"] = "3" })
	b.eventually("the deletion of the volume that no revision needs", func() error {
		_, _, _ = b.reconcile()
		claim := &corev1.PersistentVolumeClaim{}
		if err := b.client.Get(t.Context(), b.key("data"), claim); err != nil {
			return client.IgnoreNotFound(err)
		}
		if claim.DeletionTimestamp == nil {
			return errors.New("it is not being deleted")
		}
		return nil
	})
}

func TestMistakesInARollbackStallAndListWhatIsKept(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{Revisions: component.RevisionOptions{RevisionHistoryLimit: new(2)}})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.until(v1alpha1.StateReady)
	b.setValues(map[string]string{"a": "2"})
	b.setValues(map[string]string{"a": "3"})
	wantStalled := func(text string) {
		t.Helper()
		b.resetRequests()
		w, _, _ := b.reconcile()
		state, reason, message := w.Status.GetState()
		if state != v1alpha1.StateError || reason != vocabulary.ReasonSpecInvalid || !strings.Contains(message, text) {
			t.Errorf("%s, %s: %s", state, reason, message)
		}
		for _, write := range b.writes() {
			if strings.Contains(write, "configmaps") {
				t.Errorf("it wrote %s", write)
			}
		}
	}
	b.rollBack(1)
	defer func() {
		if w := b.get(); w.Status.Revision != 3 {
			t.Errorf("mistakes are counted as revisions: %v", results(w))
		}
	}()
	wantStalled("revision 1 cannot be applied again, because its manifests are not kept; those of revision 3, 2 are")
	b.update(func(w *widget.Widget) { w.Annotations[rollbackTo] = "last" })
	wantStalled(`"last" must be the number of an earlier revision`)

	secrets := &corev1.SecretList{}
	b.check(b.client.List(t.Context(), secrets, client.InNamespace(b.namespace)))
	for _, secret := range secrets.Items {
		if strings.Contains(secret.Name, "-revisions-") {
			secret.Data["history"][40] ^= 1
			b.check(b.client.Update(t.Context(), &secret))
		}
	}
	b.rollBack(2)
	wantStalled("it does not open")
	b.rollBack(0)
	b.until(v1alpha1.StateReady)
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
			b.restartWith(manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{Revisions: component.RevisionOptions{RequireApproval: true}})
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
	random := templated(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: core}\nstringData: {password: '{{ randAlphaNum 20 }}', color: {{ .Values.values.color }}}\n")
	b := newBed(t, random, component.ReconcilerOptions{Revisions: component.RevisionOptions{RevisionHistoryLimit: new(2)}})
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
