// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

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
