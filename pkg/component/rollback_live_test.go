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
	again := component.NewReconciler[*widget.Widget](operatorName, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.check(again.SetupWithManager(newManager(t, b.env, b.user)))
	b.reconciler = again
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
