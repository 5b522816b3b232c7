// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// These tests are about components that an operator built with SAP component-operator-runtime has made.

// portal renders config maps of the values, and objects that make a take-over hard: a pod template, which has many defaults;
// a definition, which has a finalizer of that runtime; one that is applied once; and a Job that is purged.
var portal = manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
	objects, err := configMaps(ctx, namespace, name, parameters)
	text := strings.ReplaceAll(`
apiVersion: v1
kind: PodTemplate
metadata: {name: web, labels: {app: web}}
template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "registry.example.com/web:1"}]}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: once, annotations: {test.corbel.run/reconcile-policy: once}}
data: {value: first}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: merged, annotations: {test.corbel.run/update-policy: ssa-merge}}
data: {value: first}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migration, annotations: {test.corbel.run/purge-order: "0"}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "registry.example.com/job:1"}]}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.NS.example.com}
spec:
  group: NS.example.com
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`, "NS", namespace)
	for _, document := range strings.Split(text, "---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), object); err != nil {
			return nil, err
		}
		object.SetAnnotations(maps.Clone(object.GetAnnotations()))
		objects = append(objects, object)
	}
	return objects, err
})

// foreignOwner is the owner of the objects of a component, as that runtime names it in an annotation and in a label.
func (b *bed) foreignOwner(name string) (annotation, label string) {
	b.Helper()
	system := &corev1.Namespace{}
	b.check(b.client.Get(b.Context(), client.ObjectKey{Name: "kube-system"}, system))
	annotation = string(system.UID) + "/" + b.namespace + "/" + name
	sum := sha256.Sum256([]byte(annotation))
	return annotation, strings.ToLower(strings.TrimRight(base32.StdEncoding.EncodeToString(sum[:]), "="))
}

// foreign is a component that the other runtime has made, with its objects.
type foreign struct {
	objects []client.Object // those that exist
	list    []map[string]any
}

// makeForeign makes the component of the test, and the objects of the generator, as that runtime leaves them. Change may change an
// object, and its item in the inventory.
func (b *bed) makeForeign(change func(object *unstructured.Unstructured, item map[string]any)) foreign {
	b.Helper()
	w := &widget.Widget{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "main", Finalizers: []string{operatorName}},
		Spec:       widget.Spec{Values: map[string]string{"a": "1", "b": "2"}},
	}
	b.check(b.client.Create(b.Context(), w))
	annotation, label := b.foreignOwner("main")
	b.auditOptions.Inherited = map[string]string{label: "test.corbel.run/Widget/" + b.namespace + "/main"}
	rendered := must(portal.Generate(b.Context(), b.namespace, "main", &w.Spec))(b)
	for _, name := range []string{"dropped", "kept", "theirs"} { // in the inventory, and not rendered any more
		rendered = append(rendered, &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"value": "old"}})
	}
	var made foreign
	for _, object := range rendered {
		u := &unstructured.Unstructured{Object: must(runtime.DefaultUnstructuredConverter.ToUnstructured(object))(b)}
		definition := u.GetKind() == "CustomResourceDefinition"
		if u.SetNamespace(b.namespace); definition {
			u.SetNamespace("")
			u.SetFinalizers([]string{operatorName})
		}
		gvk := u.GroupVersionKind()
		item := map[string]any{
			"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind, "namespace": u.GetNamespace(), "name": u.GetName(), "digest": "0a1b2c", "status": "Current",
			"adoptionPolicy": "IfUnowned", "reconcilePolicy": "OnObjectChange", "updatePolicy": "Replace", "deletePolicy": "Delete",
			"applyOrder": 0, "deleteOrder": 0, "phase": "Ready", "lastAppliedAt": "2026-07-24T10:00:00Z",
		}
		if definition {
			item["managedTypes"] = []any{map[string]any{"group": b.namespace + ".example.com", "version": "v1", "kind": "Thing"}}
		}
		u.SetLabels(merged(u.GetLabels(), map[string]string{operatorName + "/owner-id": label}))
		u.SetAnnotations(merged(u.GetAnnotations(), map[string]string{operatorName + "/owner-id": annotation, operatorName + "/digest": "0a1b2c"}))
		switch u.GetName() {
		case "once":
			item["digest"] = "__once__"
		case "kept":
			item["deletePolicy"] = "Orphan"
		case "theirs":
			other, id := b.foreignOwner("other")
			u.SetLabels(map[string]string{operatorName + "/owner-id": id})
			u.SetAnnotations(map[string]string{operatorName + "/owner-id": other, operatorName + "/digest": "0a1b2c"})
		case "migration":
			item["phase"], item["status"] = "Completed", ""
		}
		if change != nil {
			change(u, item)
		}
		made.list = append(made.list, item)
		switch {
		case item["phase"] == "Completed":
			continue
		case u.GetName() == "merged":
			b.check(b.client.Apply(b.Context(), client.ApplyConfigurationFromUnstructured(u.DeepCopy()), client.FieldOwner(operatorName)))
		default:
			b.check(b.client.Create(b.Context(), u, client.FieldOwner(operatorName)))
		}
		made.objects = append(made.objects, u)
	}
	b.setForeignStatus(made.list)
	return made
}

// setForeignStatus writes a status as the other runtime does, under a definition as that runtime has it, and gives the type our
// definition again.
func (b *bed) setForeignStatus(list any) {
	b.Helper()
	ours := &apiextensionsv1.CustomResourceDefinition{}
	key := client.ObjectKey{Name: "widgets.test.corbel.run"}
	c := must(client.New(b.env.Config(), client.Options{Scheme: apiExtensions(b)}))(b)
	b.check(c.Get(b.Context(), key, ours))
	theirs := ours.DeepCopy()
	theirs.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"] = apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"inventory":            {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}}},
		"conditions":           {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}}},
		"lastObservedAt":       {Type: "string", Format: "date-time"},
		"lastProcessingDigest": {Type: "string"},
	}, XPreserveUnknownFields: new(true)}
	// Whether the server uses a definition shows in what it does to a status.
	b.check(c.Update(b.Context(), theirs))
	status := map[string]any{
		"observedGeneration": int64(1), "appliedGeneration": int64(1), "lastObservedAt": "2026-07-24T10:00:00Z", "lastAppliedAt": "2026-07-24T09:00:00Z",
		"processingDigest": strings.Repeat("ab", 32), "lastProcessingDigest": strings.Repeat("ab", 32), "revision": int64(3), "state": "Ready", "inventory": list,
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "Ready", "message": "Dependent resources successfully reconciled", "lastTransitionTime": "2026-07-24T09:00:00Z",
		}},
	}
	patch := client.RawPatch("application/merge-patch+json", must(json.Marshal(map[string]any{"status": status}))(b))
	b.eventually("the list is accepted", func() error {
		if err := b.client.Status().Patch(b.Context(), b.raw(), patch); err != nil {
			return err
		}
		if stored := b.raw(); stored.Object["status"].(map[string]any)["lastProcessingDigest"] == nil {
			return fmt.Errorf("the status is %v", stored.Object["status"])
		}
		return nil
	})
	b.check(c.Get(b.Context(), key, theirs))
	ours.ResourceVersion = theirs.ResourceVersion
	b.check(c.Update(b.Context(), ours))
	b.eventually("our definition is in use", func() error {
		if stored := b.raw(); stored.Object["status"].(map[string]any)["lastProcessingDigest"] != nil {
			return fmt.Errorf("the status is %v", stored.Object["status"])
		}
		return nil
	})
}

func apiExtensions(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	check(t, apiextensionsv1.AddToScheme(scheme))
	return scheme
}

// wantTakenOver checks that the objects are as they were, and ours alone.
func (b *bed) wantTakenOver(made foreign, before map[string]any) {
	b.Helper()
	var remaining []client.Object
	for _, object := range made.objects {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
		err := b.client.Get(b.Context(), client.ObjectKeyFromObject(object), live)
		if object.GetName() == "dropped" {
			if !apierrors.IsNotFound(err) {
				b.Errorf("what is not rendered any more is still there: %v", err)
			}
			delete(before, "ConfigMap dropped")
			continue
		}
		b.check(err)
		remaining = append(remaining, object)
		_, isForeign := live.GetAnnotations()[operatorName+"/owner-id"]
		_, hasDigest := live.GetAnnotations()[operatorName+"/digest"]
		isOurs := live.GetLabels()[operatorName+"/owner-id"] == b.get().Status.OwnerID
		switch object.GetName() {
		case "theirs":
			if live.GetResourceVersion() != object.GetResourceVersion() {
				b.Errorf("an object of another owner was changed: %v", live.Object)
			}
		case "kept":
			if isForeign || hasDigest || live.GetLabels()[operatorName+"/owner-id"] != "" {
				b.Errorf("an orphan has %v, %v", live.GetLabels(), live.GetAnnotations())
			}
		default:
			if isForeign || hasDigest || !isOurs || len(live.GetFinalizers()) > 1 || slices.Contains(live.GetFinalizers(), operatorName) {
				b.Errorf("%s %s has %v, %v, %v", live.GetKind(), live.GetName(), live.GetLabels(), live.GetAnnotations(), live.GetFinalizers())
			}
		}
	}
	if diff := cmp.Diff(before, b.contents(remaining)); diff != "" {
		b.Errorf("the objects are not as they were (-before +after):\n%s", diff)
	}
	status := b.raw().Object["status"].(map[string]any)
	if _, old := status["lastObservedAt"]; old || strings.Contains(fmt.Sprint(status["inventory"]), "inherited") {
		b.Errorf("the status is %v", status)
	}
}

func TestAComponentOfSAPsRuntimeIsTakenOverWithOneWriteForEachObject(t *testing.T) {
	b := newBed(t, portal, component.ReconcilerOptions{})
	made := b.makeForeign(nil)
	before := b.contents(made.objects)

	plan := b.plan(component.PlanRequest[*widget.Widget]{Key: b.key("main")})
	classes := map[string]report.ChangeClass{}
	for _, change := range plan.Changes {
		classes[change.Key.Name] = change.Class
		for _, field := range change.Fields {
			if !strings.HasPrefix(field.Path, "metadata.labels") && !strings.HasPrefix(field.Path, "metadata.annotations") && !strings.HasPrefix(field.Path, "metadata.finalizers") {
				t.Errorf("planned: %s of %s, %q to %q", field.Path, change.Key, field.Old, field.New)
			}
		}
	}
	const adopt = report.ChangeAdopt
	want := map[string]report.ChangeClass{
		"a": adopt, "b": adopt, "web": adopt, "once": adopt, "merged": adopt, "things." + b.namespace + ".example.com": adopt,
		"dropped": report.ChangeDelete, "kept": report.ChangeOrphan,
	}
	if diff := cmp.Diff(want, classes); diff != "" {
		t.Errorf("planned (-want +got):\n%s\n%+v", diff, plan)
	}

	// A suspension leaves the objects as they are.
	b.annotate(map[string]string{operatorName + "/suspend": "true"})
	b.resetRequests()
	b.until(v1alpha1.StateSuspended)
	if got := without(b.writes(), "widgets", "digest-key"); len(got) > 0 {
		t.Errorf("written while it is suspended: %v", got)
	}
	if again := b.plan(component.PlanRequest[*widget.Widget]{Key: b.key("main")}); !slices.Equal(changes(again), changes(plan)) {
		t.Errorf("planned while it is suspended:\n%+v", again)
	}
	b.annotate(map[string]string{operatorName + "/suspend": "false"})

	b.resetRequests()
	w := b.until(v1alpha1.StateReady)
	wantWrites := []string{
		"create secrets main-revisions", "delete configmaps dropped", "patch configmaps kept", "patch configmaps merged", "patch configmaps once",
		"update configmaps a", "update configmaps b", "update customresourcedefinitions things." + b.namespace + ".example.com", "update podtemplates web", "update services web",
	}
	if got := without(b.writes(), "widgets", "digest-key"); !slices.Equal(got, wantWrites) {
		t.Errorf("writes: %v, want %v", got, wantWrites)
	}
	b.wantTakenOver(made, before)
	if w.Status.Revision != 4 || len(w.Status.Inventory.Items) != 8 || w.Status.Progress != "8/8" {
		t.Errorf("revision %d, progress %s, items %v", w.Status.Revision, w.Status.Progress, w.Status.Inventory.Items)
	}
	b.resetRequests()
	for range 2 {
		b.restart(portal)
		b.forward += 11 * time.Minute
		if w, _, err := b.reconcile(); !w.Status.IsReady() || err != nil {
			t.Fatalf("state %s, %v", w.Status.State, err)
		}
	}
	b.wantNoWrites("writes at rest")
	b.remove()
	b.wantGone(made)
}

// wantGone checks that nothing is left but what is kept, and what belongs to others.
func (b *bed) wantGone(made foreign) {
	b.Helper()
	for _, object := range made.objects {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
		err := b.client.Get(b.Context(), client.ObjectKeyFromObject(object), live)
		stays := object.GetName() == "kept" || object.GetName() == "theirs"
		if definition := live.GetKind() == "CustomResourceDefinition"; err == nil && definition && !live.GetDeletionTimestamp().IsZero() {
			continue // the server removes it in a moment
		}
		if stays != (err == nil) {
			b.Errorf("%s %s: %v", object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), err)
		}
	}
}

// The other operator was stopped while the component was being deleted: its definition waits for a finalizer.
func TestADeletionThatSAPsRuntimeHasBegunComesToItsEnd(t *testing.T) {
	b := newBed(t, portal, component.ReconcilerOptions{})
	made := b.makeForeign(func(object *unstructured.Unstructured, item map[string]any) {
		if object.GetName() == "dropped" {
			item["phase"], item["digest"] = "Deleting", ""
		}
	})
	for _, object := range made.objects {
		if object.GetObjectKind().GroupVersionKind().Kind == "CustomResourceDefinition" {
			b.check(b.client.Delete(t.Context(), object))
		}
	}
	b.remove()
	b.wantGone(made)
}

func TestAGarbledListIsOneErrorAndNothingIsWritten(t *testing.T) {
	b := newBed(t, portal, component.ReconcilerOptions{})
	made := b.makeForeign(func(object *unstructured.Unstructured, item map[string]any) {
		if object.GetName() == "a" {
			item["deletePolicy"] = "Burn"
		}
	})
	b.resetRequests()
	want := `status.inventory is a list, as SAP component-operator-runtime writes it, and cannot be taken over: item`
	var status struct{ Conditions []metav1.Condition }
	for range 3 {
		_, err := b.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: b.key("main")})
		b.check(err)
	}
	b.check(runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"conditions": b.raw().Object["status"].(map[string]any)["conditions"]}, &status))
	for _, condition := range status.Conditions {
		if condition.Reason != vocabulary.ReasonSpecInvalid && condition.Reason != vocabulary.ReasonInvalid || !strings.Contains(condition.Message, want) || !strings.Contains(condition.Message, `(ConfigMap `+b.namespace+`/a): deletePolicy "Burn" does not exist`) {
			t.Errorf("%s %s: %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
		}
	}
	if writes := b.writes(); !slices.Equal(writes, []string{"patch widgets/status main"}) {
		t.Errorf("writes: %v", writes)
	}
	for _, item := range made.list { // corrected
		item["deletePolicy"] = "Delete"
	}
	b.setForeignStatus(made.list)
	b.until(v1alpha1.StateReady)
}

// TestATakeOverFromSAPsRuntimeSurvivesACrashAtAnyRequest kills the operator before and after each request of a take-over and of the deletion that follows,
// and replaces it.
func TestATakeOverFromSAPsRuntimeSurvivesACrashAtAnyRequest(t *testing.T) {
	for name, take := range map[string]bool{"take-over": true, "deletion without it": false} {
		t.Run(name, func(t *testing.T) {
			crashAtEachRequest(t, func(t *testing.T, at int, after bool) (int, bool) { return takeOverForeign(t, take, at, after) })
		})
	}
}

func takeOverForeign(t *testing.T, take bool, at int, after bool) (requests int, crashed bool) {
	t.Helper()
	b := newBed(t, portal, component.ReconcilerOptions{})
	made := b.makeForeign(nil)
	before := b.contents(made.objects)
	gate, until := b.crashing(portal, component.ReconcilerOptions{}, at, after)
	if take {
		until("the component is ready", func() bool { return b.get().Status.IsReady() && b.get().Status.Revision > 3 })
		b.takenOverBy(gate, "dropped")
		b.wantTakenOver(made, before)
	}
	b.check(b.client.Delete(t.Context(), b.get()))
	until("the component is gone", func() bool { return apierrors.IsNotFound(b.client.Get(t.Context(), b.key("main"), &widget.Widget{})) })
	b.wantGone(made)
	return len(gate.Requests()), gate.HasCrashed()
}
