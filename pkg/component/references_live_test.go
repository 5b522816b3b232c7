// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	w := b.until(component.StateReady)
	want := map[string][]byte{"password": []byte(canary), "greeting": []byte("hi"), "settings.size": []byte("3"), "other": []byte("noted")}
	if diff := cmp.Diff(want, b.secret("rendered")); diff != "" || w.Status.Revision != 1 {
		t.Errorf("revision %d; rendered (-want +got):\n%s", w.Status.Revision, diff)
	}

	texts := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "texts"}, Data: map[string]string{"hello": "moin"}}
	b.check(b.client.Update(t.Context(), texts))
	w = b.until(component.StateReady)
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
	b.until(component.StateReady)
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
	b.until(component.StateReady)
	b.check(b.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "creds"}}))
	b.check(b.client.Delete(t.Context(), b.get()))
	b.untilGone()
	if diff := cmp.Diff(map[string]bool{"password": false, "settings": true}, loaded); diff != "" {
		t.Errorf("loaded in deletion (-want +got):\n%s", diff)
	}
}
