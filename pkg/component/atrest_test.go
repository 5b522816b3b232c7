// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

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
	failing := func(text func(number int) error) manifests.Generator {
		n := 0
		return manifests.GeneratorFunc(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
			n++
			return nil, text(n)
		})
	}
	object := func(object client.Object) manifests.Generator {
		return manifests.GeneratorFunc(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
			return []client.Object{object}, nil
		})
	}
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
		{name: "ready", generator: manifests.GeneratorFunc(configMaps), spec: widget.Spec{Values: map[string]string{"a": "1"}}, state: v1alpha1.StateReady, reason: vocabulary.ReasonReady},
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
		{name: "the server refuses an object", generator: object(invalid), state: v1alpha1.StateError, reason: vocabulary.ReasonError},
		{name: "the generator fails", generator: failing(func(int) error { return errors.New("no chart") }), state: v1alpha1.StateError, reason: vocabulary.ReasonError},
		{
			name: "the generator fails with another identifier every time", state: v1alpha1.StateError, reason: vocabulary.ReasonError,
			generator: failing(func(n int) error { return fmt.Errorf("no chart (request 7d444840-9dc0-11d1-b245-%012d)", n) }),
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
