// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

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
	if spec.Other != nil {
		data["other"] = spec.Other.Note()
	}
	return []client.Object{&corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: "rendered"}, StringData: data,
	}}, nil
}

func referringSpec() widget.Spec {
	return widget.Spec{
		Password: &component.SecretKeyReference{Name: "creds"},
		Settings: &component.ConfigMapReference{Name: "settings"},
		Texts:    map[string]component.ConfigMapKeyReference{"greeting": {Name: "texts", Key: "hello"}},
		Other:    &widget.OtherReference{Name: "other"},
	}
}

// createReferred makes what the spec refers to.
func (b *bed) createReferred() {
	b.Helper()
	b.createSecret("creds", map[string]string{"token": canary})
	for name, data := range map[string]map[string]string{"settings": {"size": "3"}, "texts": {"hello": "hi"}} {
		b.check(b.client.Create(b.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}, Data: data}))
	}
	// It is suspended, so that it deploys nothing where there is a manager.
	other := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "other"}, Spec: widget.Spec{SuspensionSpec: component.SuspensionSpec{Suspend: true}}}
	b.check(b.client.Create(b.Context(), other))
	other.Status.Note = "noted"
	b.check(b.client.Status().Update(b.Context(), other))
}

func (b *bed) createSecret(name string, data map[string]string) {
	b.Helper()
	b.check(b.client.Create(b.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}, StringData: data}))
}

func (b *bed) secret(name string) map[string][]byte {
	b.Helper()
	secret := &corev1.Secret{}
	b.check(b.client.Get(b.Context(), b.key(name), secret))
	return secret.Data
}

func TestReferencesAreLoadedBeforeTheGeneratorRunsAndAChangeOfThemIsANewRevision(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(referring), component.ReconcilerOptions{})
	b.createReferred()
	b.create(referringSpec())
	w := b.until(v1alpha1.StateReady)
	want := map[string][]byte{"password": []byte(canary), "greeting": []byte("hi"), "settings.size": []byte("3"), "other": []byte("noted")}
	if diff := cmp.Diff(want, b.secret("rendered")); diff != "" || w.Status.Revision != 1 {
		t.Errorf("revision %d; rendered (-want +got):\n%s", w.Status.Revision, diff)
	}

	texts := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "texts"}, Data: map[string]string{"hello": "moin"}}
	b.check(b.client.Update(t.Context(), texts))
	w = b.until(v1alpha1.StateReady)
	if got := string(b.secret("rendered")["greeting"]); got != "moin" || w.Status.Revision != 2 {
		t.Errorf("greeting %q, revision %d", got, w.Status.Revision)
	}
	b.resetRequests()
	b.reconcile()
	if writes := b.writes(); len(writes) > 0 {
		t.Errorf("writes at rest: %v", writes)
	}
}

func TestWhatIsLoadedIsNeverWrittenIntoTheComponentNorIntoEvents(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(referring), component.ReconcilerOptions{}, func(b *bed) {
		hook := func(_ context.Context, _ client.Client, w *widget.Widget) error {
			if got := string(w.Spec.Password.Value()); got != canary {
				return fmt.Errorf("a hook finds %d bytes", len(got))
			}
			w.Status.Note = "x"
			return nil
		}
		b.reconciler.WithPostReadHook(hook).WithPreReconcileHook(hook).WithPostReconcileHook(hook)
	})
	b.createReferred()
	b.create(referringSpec())
	b.until(v1alpha1.StateReady)
	list := &widget.WidgetList{}
	b.check(b.client.List(t.Context(), list, client.InNamespace(b.namespace)))
	events := &corev1.EventList{}
	b.check(b.client.List(t.Context(), events, client.InNamespace(b.namespace)))
	for _, object := range []client.ObjectList{list, events} {
		content, err := json.Marshal(object)
		b.check(err)
		if strings.Contains(string(content), canary) || len(content) < 10 {
			t.Errorf("%T holds the secret", object)
		}
	}
}

func TestWhatIsMissingDoesNotHoldUpADeletion(t *testing.T) {
	loaded := map[string]bool{}
	b := newBed(t, manifests.GeneratorFunc(referring), component.ReconcilerOptions{}, func(b *bed) {
		b.reconciler.WithPreDeleteHook(func(_ context.Context, _ client.Client, w *widget.Widget) error {
			loaded["password"], loaded["settings"] = w.Spec.Password.Value() != nil, w.Spec.Settings.Data() != nil
			return nil
		})
	})
	b.createReferred()
	b.create(referringSpec())
	b.until(v1alpha1.StateReady)
	b.check(b.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "creds"}}))
	b.check(b.client.Delete(t.Context(), b.get()))
	b.untilGone()
	if diff := cmp.Diff(map[string]bool{"password": false, "settings": true}, loaded); diff != "" {
		t.Errorf("loaded in deletion (-want +got):\n%s", diff)
	}
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
	// There is no other component: the manager would reconcile it, too.
	b.createSecret("creds", map[string]string{"token": canary})
	for name, data := range map[string]map[string]string{"settings": {"size": "3"}, "texts": {"hello": "hi"}} {
		b.check(b.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: b.object(name), Data: data}))
	}
	spec := referringSpec()
	spec.RequeueSpec, spec.Other = aDay, nil
	b.create(spec)
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

func TestAKubeconfigThatIsReferredToRequeuesWhenItChanges(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.createSecret("kubeconfig", map[string]string{"value": "none"})
	b.create(widget.Spec{ClientSpec: component.ClientSpec{KubeConfig: &component.KubeConfigSpec{SecretRef: component.SecretKeyReference{Name: "kubeconfig", Key: "value"}}}})
	b.until(v1alpha1.StateError)
	b.check(b.client.Update(t.Context(), &corev1.Secret{ObjectMeta: b.object("kubeconfig"), StringData: map[string]string{"value": "another"}}))
	b.expectRequeue("the kubeconfig")
}

func TestComponentsThatAreSuspendedOrGoneDependOnNothing(t *testing.T) {
	for name, end := range map[string]func(b *bed){
		"suspended": func(b *bed) {
			b.update(func(w *widget.Widget) { w.Spec.Suspend = true })
			b.until(v1alpha1.StateSuspended)
		},
		"gone": func(b *bed) {
			b.check(b.client.Delete(b.Context(), b.get()))
			b.untilGone()
			b.untilGone()
		},
		"without references": func(b *bed) {
			b.update(func(w *widget.Widget) { w.Spec.Settings = nil })
			b.until(v1alpha1.StateReady)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
			b.check(b.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: b.object("settings")}))
			b.create(widget.Spec{Settings: &component.ConfigMapReference{Name: "settings"}})
			b.until(v1alpha1.StateReady)
			if got := component.Waiters(b.reconciler); got != 1 {
				t.Errorf("%d components depend on something before", got)
			}
			end(b)
			if got := component.Waiters(b.reconciler); got != 0 {
				t.Errorf("%d components depend on something", got)
			}
		})
	}
}
