// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/wire"
)

func TestLifeOfAComponent(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1", "b": "2", "c": "3"}})

	b.resetRequests()
	w := b.until(v1alpha1.StateReady)
	if value, ok := b.configMap("b"); !ok || value != "2" {
		t.Errorf("config map b: %q, %v", value, ok)
	}
	want := []string{
		"patch widgets main",        // finalizer
		"patch widgets/status main", // first seen, and inventory
		"create configmaps ", "create configmaps ", "create configmaps ", "create secrets main-revisions",
		"patch widgets/status main", // ready
	}
	var got []string
	for _, write := range b.writes() {
		if strings.HasPrefix(write, "create configmaps") {
			write = "create configmaps "
		}
		if !strings.Contains(write, "digest-key") { // of the first component
			got = append(got, write)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes of the installation (-want +got):\n%s", diff)
	}
	if !slices.Contains(w.Finalizers, operatorName) || w.Status.Progress != "3/3" || w.Status.Revision != 1 ||
		w.Status.AppliedGeneration != w.Generation || w.Status.ObservedGeneration != w.Generation || len(w.Status.Inventory.Items) != 3 {
		t.Errorf("finalizers %v, status %+v", w.Finalizers, w.Status)
	}

	b.resetRequests()
	if _, result, err := b.reconcile(); err != nil || result.RequeueAfter < 9*time.Minute || result.RequeueAfter > 10*time.Minute {
		t.Errorf("at rest: %+v, %v", result, err)
	}
	b.restart(manifests.GeneratorFunc(configMaps))
	b.reconcile()
	b.wantNoWrites("writes at rest")

	b.update(func(w *widget.Widget) { w.Spec.Values["b"] = "changed" })
	b.resetRequests()
	w = b.until(v1alpha1.StateReady)
	want = []string{"update configmaps b", "patch secrets main-revisions", "patch widgets/status main"}
	if diff := cmp.Diff(want, b.writes()); diff != "" || w.Status.Revision != 2 {
		t.Errorf("revision %d; writes for one change (-want +got):\n%s", w.Status.Revision, diff)
	}

	b.annotate(map[string]string{operatorName + "/rollback-to": "1"})
	b.resetRequests()
	w = b.until(v1alpha1.StateReady)
	want = []string{"patch secrets main-revisions", "update configmaps b", "patch widgets/status main"}
	if diff := cmp.Diff(want, b.writes()); diff != "" || w.Status.Revision != 3 {
		t.Errorf("revision %d; writes for a rollback (-want +got):\n%s", w.Status.Revision, diff)
	}

	b.update(func(w *widget.Widget) {
		w.Annotations = nil
		delete(w.Spec.Values, "b")
		delete(w.Spec.Values, "c")
	})
	w = b.until(v1alpha1.StateReady)
	if _, ok := b.configMap("c"); ok || len(w.Status.Inventory.Items) != 1 {
		t.Errorf("config map c was not pruned: %v", w.Status.Inventory.Items)
	}

	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	b.check(b.client.Create(t.Context(), other))
	b.update(func(w *widget.Widget) { w.Spec.Namespace = other.Name })
	b.resetRequests()
	b.until(v1alpha1.StateReady)
	got = nil
	for _, e := range b.events()[b.since:] {
		if e.User == b.user && e.Resource == "configmaps" && (e.Verb == "create" || e.Verb == "delete") && !isDryRun(e) {
			got = append(got, e.Verb+" in "+e.Namespace)
		}
	}
	if diff := cmp.Diff([]string{"create in " + other.Name, "delete in " + b.namespace}, got); diff != "" {
		t.Errorf("writes for another placement (-want +got):\n%s", diff)
	}

	b.remove()
	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: other.Name, Name: "a"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the deletion: %v", err)
	}
	b.wantNone("a", "b")
}

// expect runs a reconcile and looks at its verdict.
func (b *bed) expect(state v1alpha1.State, reason string) *widget.Widget {
	b.Helper()
	w, _, _ := b.reconcile()
	if gotState, gotReason, message := w.Status.GetState(); gotState != state || gotReason != reason {
		b.Errorf("%s, %s: %s, want %s, %s", gotState, gotReason, message, state, reason)
	}
	return w
}

// pause runs reconciles with as much time between them, and returns what they wrote.
func (b *bed) pause(reconciles int, between time.Duration) []string {
	b.Helper()
	b.resetRequests()
	for range reconciles {
		b.forward += between
		_, _ = b.reconciler.Reconcile(b.Context(), ctrl.Request{NamespacedName: b.key("main")})
	}
	return b.writes()
}

func TestAtRestNothingIsWritten(t *testing.T) {
	renderings := 0
	failing := manifests.GeneratorFunc(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
		renderings++
		return nil, fmt.Errorf("no chart (request 7d444840-9dc0-11d1-b245-%012d)", renderings)
	})
	invalid := configMap("a", nil)
	invalid.Data = map[string]string{"not/legal": "1"}
	tests := []struct {
		name      string
		generator manifests.Generator
		spec      widget.Spec
		options   component.ReconcilerOptions
		prepare   func(b *bed)
		state     v1alpha1.State
		reason    string
	}{
		{
			name: "suspended", generator: manifests.GeneratorFunc(configMaps), state: v1alpha1.StateSuspended, reason: vocabulary.ReasonSuspended,
			spec: widget.Spec{SuspensionSpec: component.SuspensionSpec{Suspend: true}},
		},
		{
			name: "its deletion is blocked", generator: manifests.GeneratorFunc(configMaps), state: v1alpha1.StateDeleting, reason: vocabulary.ReasonDeletionBlocked,
			spec: widget.Spec{Values: map[string]string{"a": "1"}},
			prepare: func(b *bed) {
				b.update(func(w *widget.Widget) { w.Finalizers = append(w.Finalizers, "example.com/foreign") })
				b.check(b.client.Delete(b.Context(), b.get()))
			},
		},
		{
			name: "an object belongs to another client", generator: manifests.GeneratorFunc(configMaps), state: v1alpha1.StateError, reason: vocabulary.ReasonOwnerConflict,
			spec:    widget.Spec{Values: map[string]string{"a": "1"}},
			options: component.ReconcilerOptions{AdoptionPolicy: new(v1alpha1.AdoptionPolicyNever)},
			prepare: func(b *bed) {
				b.check(b.client.Create(b.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "a"}}))
			},
		},
		{name: "the server refuses an object", generator: rendering(invalid), state: v1alpha1.StateError, reason: vocabulary.ReasonError},
		{
			name: "the generator fails with another identifier every time", state: v1alpha1.StateError, reason: vocabulary.ReasonError,
			generator: failing,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t, test.generator, test.options)
			b.create(test.spec)
			if test.prepare != nil && test.state == v1alpha1.StateDeleting {
				b.until(v1alpha1.StateReady)
			}
			if test.prepare != nil {
				test.prepare(b)
			}
			b.pause(3, time.Minute)
			b.pause(1, 10*time.Minute) // the history has it once that the revision is not ready in time
			if writes := b.pause(12, time.Minute); len(writes) > 0 {
				t.Errorf("12 reconciles wrote %v", writes)
			}
			state, reason, message := b.get().Status.GetState()
			if state != test.state || reason != test.reason {
				t.Errorf("%s, %s: %s", state, reason, message)
			}
		})
	}
}

func TestAnIgnoredObjectThatGoesAwayIsCreatedAtOnce(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{AdoptionPolicy: new(v1alpha1.AdoptionPolicyIgnore)})
	theirs := &corev1.ConfigMap{ObjectMeta: b.object("a")}
	b.check(b.client.Create(t.Context(), theirs))
	b.create(widget.Spec{RequeueSpec: aDay, Values: map[string]string{"a": "1"}})
	b.until(v1alpha1.StateReady)
	b.check(b.client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs))
	if w := b.get(); len(theirs.Data) > 0 || len(w.Status.Inventory.Items) > 0 || w.Status.Progress != "0/0" {
		t.Errorf("it has %v, on record is %v, and the progress is %s", theirs.Data, w.Status.Inventory.Items, w.Status.Progress)
	}
	b.check(b.client.Delete(t.Context(), theirs))
	b.expectRequeue("the end of the config map")
	b.until(v1alpha1.StateReady)
	b.check(b.client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs))
	b.remove()
}

func TestTheEndOfForeignInstancesRequeuesTheDeletionThatTheyBlock(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{
		TypeSpec: component.TypeSpec{AdditionalManagedTypes: []v1alpha1.TypeInfo{{Group: "batch", Kind: "CronJob"}}},
		Values:   map[string]string{"a": "1"},
	})
	b.until(v1alpha1.StateReady)
	foreign := read("{apiVersion: batch/v1, kind: CronJob, metadata: {name: foreign, namespace: " + b.namespace + "}, spec: {schedule: '@yearly', " +
		"jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}}}}}")
	b.check(b.client.Create(t.Context(), foreign))
	b.check(b.client.Delete(t.Context(), b.get()))
	b.expect(v1alpha1.StateDeleting, vocabulary.ReasonDeletionBlocked)
	b.expectRequeue("the start of the watch")
	b.expect(v1alpha1.StateDeleting, vocabulary.ReasonDeletionBlocked)
	b.check(b.client.Delete(t.Context(), foreign))
	b.expectRequeue("the end of the cron job")
	b.untilGone()
}

// canary is a secret that must be found nowhere but in secrets.
const canary = "canary-7c1e5a90"

// referring renders a secret of what the spec refers to.
func referring(_ context.Context, _, _ string, parameters types.Unstructurable) ([]client.Object, error) {
	spec := parameters.(*widget.Spec)
	data := map[string]string{"password": string(spec.Password.Value())}
	for name, text := range spec.Texts {
		data[name] = text.Value()
	}
	for key, value := range spec.Settings.Data() {
		data["settings."+key] = value
	}
	return []client.Object{&corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: "rendered"}, StringData: data,
	}}, nil
}

func (b *bed) createSecret(name string, data map[string]string) {
	b.Helper()
	b.check(b.client.Create(b.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}, StringData: data}))
}

// aDay is an interval that is longer than any test.
var aDay = component.RequeueSpec{RequeueInterval: &types.Duration{Duration: 24 * time.Hour}}

// expectRequeue waits until the component of the test is requeued. Nothing else drains the queue
// as long as the manager does not run.
func (b *bed) expectRequeue(why string) {
	b.Helper()
	b.eventually(why+" to requeue a component", func() error {
		requeued := component.DrainRequeued(b.reconciler)
		if len(requeued) > 0 && requeued[0] != b.key("main") {
			b.Fatalf("%s requeued %s", why, requeued)
		}
		if len(requeued) == 0 {
			return errors.New("no component was requeued")
		}
		return nil
	})
}

func (b *bed) object(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: b.namespace, Name: name}
}

func TestWhatAComponentRefersToReconcilesItWhenItChanges(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(referring), component.ReconcilerOptions{})
	b.createSecret("creds", map[string]string{"token": canary})
	for name, data := range map[string]map[string]string{"settings": {"size": "3"}, "texts": {"hello": "hi"}} {
		b.check(b.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: b.object(name), Data: data}))
	}
	b.create(widget.Spec{
		RequeueSpec: aDay,
		Password:    &component.SecretKeyReference{Name: "creds"},
		Settings:    &component.ConfigMapReference{Name: "settings"},
		Texts:       map[string]component.ConfigMapKeyReference{"greeting": {Name: "texts", Key: "hello"}},
	})
	b.start(b.manager)
	rendered := func(key, want string) {
		b.Helper()
		b.comesTo(func() (string, bool) {
			secret := &corev1.Secret{}
			err := b.client.Get(t.Context(), b.key("rendered"), secret)
			return string(secret.Data[key]), err == nil && string(secret.Data[key]) == want && b.get().Status.IsReady()
		})
	}
	rendered("greeting", "hi")
	b.resetRequests()
	b.check(b.client.Update(t.Context(), &corev1.ConfigMap{ObjectMeta: b.object("texts"), Data: map[string]string{"hello": "moin"}}))
	rendered("greeting", "moin")
	b.comesTo(func() (string, bool) {
		revision := b.get().Status.Revision
		return fmt.Sprintf("revision %d", revision), revision == 2
	})
	if diff := cmp.Diff([]string{"update secrets rendered", "patch secrets main-revisions", "patch widgets/status main"}, b.writes()); diff != "" {
		t.Errorf("writes for a changed reference (-want +got):\n%s", diff)
	}
	b.check(b.client.Update(t.Context(), &corev1.Secret{ObjectMeta: b.object("creds"), StringData: map[string]string{"password": canary + "2"}}))
	rendered("password", canary+"2")
	b.check(b.client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: b.object("settings")}))
	b.comesTo(func() (string, bool) {
		_, _, message := b.get().Status.GetState()
		return message, strings.Contains(message, "ConfigMap "+b.namespace+"/settings does not exist")
	})
	b.check(b.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: b.object("settings"), Data: map[string]string{"size": "4"}}))
	rendered("settings.size", "4")
}

// TestATypeThatComesLaterIsNoticed has two components that wait for one type. The operator asks for the type once for both.
func TestATypeThatComesLaterIsNoticed(t *testing.T) {
	const group = "late.corbel.run"
	generator := manifests.GeneratorFunc(func(_ context.Context, _, name string, _ types.Unstructurable) ([]client.Object, error) {
		return []client.Object{&unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Gear", "metadata": map[string]any{"name": name}}}}, nil
	})
	var lock sync.Mutex
	var asked []time.Time
	count := func(next http.RoundTripper) http.RoundTripper {
		return wire.Through(next, func(r *http.Request) (*http.Response, error) {
			if lock.Lock(); strings.HasSuffix(r.URL.Path, "/apis/"+group+"/v1") {
				asked = append(asked, time.Now())
			}
			lock.Unlock()
			return next.RoundTrip(r)
		})
	}
	b := newBed(t, generator, component.ReconcilerOptions{}, via(count))
	names := []string{"main", "second"}
	for _, name := range names {
		b.check(b.client.Create(t.Context(), &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}))
	}
	b.start(b.manager)
	all := func(state v1alpha1.State, reason string) (string, bool) {
		for _, name := range names {
			w := &widget.Widget{}
			b.check(b.client.Get(t.Context(), b.key(name), w))
			if got, why, message := w.Status.GetState(); got != state || why != reason {
				return name + ": " + why + ": " + message, false
			}
		}
		return "", true
	}
	b.comesTo(func() (string, bool) { return all(v1alpha1.StateError, vocabulary.ReasonInvalid) })
	lock.Lock()
	asked = nil
	lock.Unlock()
	b.comesTo(func() (string, bool) {
		lock.Lock()
		defer lock.Unlock()
		return "fewer than two requests", len(asked) >= 2
	})
	if between := asked[1].Sub(asked[0]); between < 3*time.Second {
		t.Errorf("the operator asks again after %s", between)
	}

	definition := read("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gears." + group + "}, spec: {group: " + group +
		", scope: Namespaced, names: {plural: gears, singular: gear, kind: Gear, listKind: GearList}, " +
		"versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}")
	b.check(b.client.Create(t.Context(), definition))
	t.Cleanup(func() { _ = b.client.Delete(context.WithoutCancel(t.Context()), definition) })
	b.comesTo(func() (string, bool) { return all(v1alpha1.StateReady, vocabulary.ReasonReady) })
}
