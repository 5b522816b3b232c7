// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

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
	b.until(component.StateError)
	b.check(b.client.Update(t.Context(), &corev1.Secret{ObjectMeta: b.object("kubeconfig"), StringData: map[string]string{"value": "another"}}))
	b.expectRequeue("the kubeconfig")
}

func TestComponentsThatAreSuspendedOrGoneDependOnNothing(t *testing.T) {
	for name, end := range map[string]func(b *bed){
		"suspended": func(b *bed) {
			b.update(func(w *widget.Widget) { w.Spec.Suspend = true })
			b.until(component.StateSuspended)
		},
		"gone": func(b *bed) {
			b.check(b.client.Delete(b.Context(), b.get()))
			b.untilGone()
			b.untilGone()
		},
		"without references": func(b *bed) {
			b.update(func(w *widget.Widget) { w.Spec.Settings = nil })
			b.until(component.StateReady)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
			b.check(b.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: b.object("settings")}))
			b.create(widget.Spec{Settings: &component.ConfigMapReference{Name: "settings"}})
			b.until(component.StateReady)
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
