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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/wire"
)

// placed makes three config maps that bear the name of the deployment, and have its
// namespace by default. The last one is orphaned.
func placed(_ context.Context, _, name string, _ types.Unstructurable) ([]client.Object, error) {
	return []client.Object{configMap(name+"-a", nil), configMap(name+"-b", nil), annotated(name+"-c", "delete-policy", "orphan")}, nil
}

// newNamespace makes a namespace of the user.
func (b *bed) newNamespace() string {
	b.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: b.namespace + "-"}}
	b.check(b.client.Create(b.Context(), namespace))
	return namespace.Name
}

// owned returns the config maps of a deployment, and which of them have our label and annotation.
func (b *bed) owned(namespace, name string) (all, ours []string) {
	b.Helper()
	list := &corev1.ConfigMapList{}
	b.check(b.client.List(b.Context(), list, client.InNamespace(namespace)))
	for _, c := range list.Items {
		if !strings.HasPrefix(c.Name, name+"-") {
			continue
		}
		all = append(all, c.Name)
		if c.Labels[operatorName+"/owner-id"] != "" || c.Annotations[operatorName+"/owner"] != "" {
			ours = append(ours, c.Name)
		}
	}
	return all, ours
}

// wantOldAfterNew looks at the writes since the last resetRequests: all creations come before
// whatever is done to old objects.
func (b *bed) wantOldAfterNew() {
	b.Helper()
	created, old := -1, -1
	for i, e := range b.events()[b.since:] {
		if e.User != b.user || e.Resource != "configmaps" || e.Code >= 400 {
			continue
		}
		switch e.Verb {
		case "create":
			created = i
		case "delete", "patch", "update":
			if old < 0 {
				old = i
			}
		}
	}
	if created < 0 || old < 0 || created > old {
		b.Errorf("the last creation is request %d, the first that is about an old object %d:\n%v", created, old, b.writes())
	}
}

func TestADeploymentStaysWhereItIsWhileItCannotBeWhereItShall(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(placed), component.ReconcilerOptions{MissingNamespacesPolicy: new(v1alpha1.MissingNamespacesPolicyDoNotCreate)})
	b.create(widget.Spec{})
	before := b.until(v1alpha1.StateReady)
	missing := b.namespace + "-missing"
	b.update(func(w *widget.Widget) { w.Spec.Namespace = missing })
	b.resetRequests()
	for range 3 {
		w, _, _ := b.reconcile()
		if _, _, message := w.Status.GetState(); w.Status.IsReady() || !strings.Contains(message, missing) {
			t.Errorf("the component says: %s", message)
		}
	}
	if _, ours := b.owned(b.namespace, "main"); len(ours) != 3 {
		t.Errorf("of the old ones only %v are left", ours)
	}
	for _, write := range b.writes() {
		if !strings.HasPrefix(write, "patch widgets/status ") && write != "patch secrets main-revisions" {
			t.Errorf("write: %s", write)
		}
	}
	b.check(b.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: missing}}))
	b.resetRequests()
	w := b.untilGeneration()
	b.wantOldAfterNew()
	left, stillOurs := b.owned(b.namespace, "main")
	_, ours := b.owned(missing, "main")
	if len(ours) != 3 || !slices.Equal(left, []string{"main-c"}) || len(stillOurs) > 0 || w.Status.Inventory.Count() != before.Status.Inventory.Count() {
		t.Errorf("%v are there, %v are left; on record are %v", ours, left, w.Status.Inventory.Items)
	}
}

func TestAnIgnoredObjectThatGoesAwayIsCreatedAtOnce(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{AdoptionPolicy: new(v1alpha1.AdoptionPolicyIgnore)})
	theirs := &corev1.ConfigMap{ObjectMeta: b.object("a")}
	b.check(b.client.Create(t.Context(), theirs))
	b.create(widget.Spec{RequeueSpec: aDay, Values: map[string]string{"a": "1"}})
	b.until(v1alpha1.StateReady)
	b.check(b.client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs))
	if recorded := b.get().Status.Inventory.Items; len(theirs.Data) > 0 || len(recorded) > 0 {
		t.Errorf("it has %v, and on record is %v", theirs.Data, recorded)
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
