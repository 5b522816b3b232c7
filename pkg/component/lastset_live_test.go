// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// fragile is configMaps with a Secret, which fails or renders an invalid object if the values ask for it.
func fragile(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
	spec := parameters.(*widget.Spec)
	if spec.Values["fails"] != "" {
		return nil, errors.New("the template fails")
	}
	objects, err := configMaps(ctx, namespace, name, parameters)
	for _, object := range objects {
		if object.GetName() == "invalid" {
			object.SetAnnotations(map[string]string{operatorName + "/apply-ordr": "1"})
		}
	}
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: "rendered"}, StringData: map[string]string{"size": spec.Settings.Data()["size"]},
	}
	return append(objects, secret), err
}

// found returns the config maps a to c, and whether the secret is there.
func (b *bed) found() map[string]string {
	b.Helper()
	objects := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		if value, exists := b.configMap(name); exists {
			objects[name] = value
		}
	}
	if err := b.client.Get(b.Context(), b.key("rendered"), &corev1.Secret{}); err == nil {
		objects["rendered"] = ""
	}
	return objects
}

// damage is what other clients do.
func (b *bed) damage() {
	b.Helper()
	b.check(b.client.Update(b.Context(), &corev1.ConfigMap{ObjectMeta: b.object("a"), Data: map[string]string{"value": "drifted"}}))
	b.check(b.client.Delete(b.Context(), &corev1.ConfigMap{ObjectMeta: b.object("b")}))
	b.check(b.client.Delete(b.Context(), &corev1.Secret{ObjectMeta: b.object("rendered")}))
}

func TestWhatWasAppliedLastIsRepairedWhileThereIsNothingNew(t *testing.T) {
	values := func(more string) func(*bed) {
		return func(b *bed) {
			b.update(func(w *widget.Widget) { w.Spec.Values = map[string]string{"a": "2", "c": "1", more: "1"} })
		}
	}
	tests := []struct {
		name     string
		fail     func(*bed)
		options  component.ReconcilerOptions
		state    v1alpha1.State
		reason   string
		revision int64
		// forgets: another process repairs nothing.
		forgets bool
	}{
		{name: "an object is invalid", fail: values("invalid"), state: v1alpha1.StateError, reason: vocabulary.ReasonInvalid, revision: 2},
		{name: "the generator fails", fail: values("fails"), state: v1alpha1.StateError, reason: vocabulary.ReasonError, revision: 2},
		{name: "the history keeps nothing", fail: values("fails"), options: component.ReconcilerOptions{Revisions: component.RevisionOptions{RevisionHistoryLimit: new(0)}},
			state: v1alpha1.StateError, reason: vocabulary.ReasonError, revision: 2, forgets: true},
		{name: "the plan to approve fails", fail: func(b *bed) {
			b.annotate(map[string]string{operatorName + "/require-approval": "true"})
			values("fails")(b)
		},
			state: v1alpha1.StateError, reason: vocabulary.ReasonError, revision: 1},
		{name: "a patch names a Secret", state: v1alpha1.StateError, reason: vocabulary.ReasonSpecInvalid, revision: 2, fail: func(b *bed) {
			b.update(func(w *widget.Widget) {
				w.Spec.Values = map[string]string{"a": "2", "c": "1"}
				w.Spec.Patches = []v1alpha1.Patch{{Patch: `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "rendered", "labels": {"a": "b"}}}`}}
			})
		}},
		{name: "a reference is missing", state: v1alpha1.StatePending, reason: vocabulary.ReasonRetrying, revision: 1, fail: func(b *bed) {
			b.check(b.client.Delete(b.Context(), &corev1.ConfigMap{ObjectMeta: b.object("settings")}))
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t, manifests.GeneratorFunc(fragile), test.options)
			b.check(b.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: b.object("settings"), Data: map[string]string{"size": "3"}}))
			b.create(widget.Spec{Values: map[string]string{"a": "1", "b": "1"}, Settings: &component.ConfigMapReference{Name: "settings"}})
			b.until(v1alpha1.StateReady)
			applied := b.found()
			test.fail(b)
			for _, restart := range []bool{false, true, false} {
				if restart {
					b.restartWith(manifests.GeneratorFunc(fragile), test.options)
				}
				b.damage()
				damaged := b.found()
				w, _, _ := b.reconcile()
				want := applied
				if restart && test.forgets {
					want = damaged
				}
				if diff := cmp.Diff(want, b.found()); diff != "" {
					t.Fatalf("restart: %t (-want +got):\n%s", restart, diff)
				}
				state, reason, message := w.Status.GetState()
				if repairs := strings.HasSuffix(message, "; until then, what was applied last is repaired"); state != test.state || reason != test.reason ||
					w.Status.Revision != test.revision || repairs != !cmp.Equal(want, damaged) {
					t.Fatalf("%s, %s, revision %d: %s", state, reason, w.Status.Revision, message)
				}
				b.resetRequests()
				b.reconcile()
				if writes := b.writes(); len(writes) > 0 {
					t.Errorf("writes at rest: %v", writes)
				}
				if restart && test.forgets {
					return
				}
			}
		})
	}
}

func TestWhatWasAppliedLastIsRepairedAsSoonAsItIsChanged(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(fragile), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1", "b": "1"}})
	b.until(v1alpha1.StateReady)
	applied := b.found()
	b.update(func(w *widget.Widget) { w.Spec.Values = map[string]string{"a": "2", "invalid": "1"} })
	b.start(b.manager)
	for range 2 {
		b.eventually("the failure to be reported", func() error {
			if _, reason, message := b.get().Status.GetState(); reason != vocabulary.ReasonInvalid {
				return errors.New(message)
			}
			return nil
		})
		b.damage()
		b.eventually("the repair", func() error {
			if diff := cmp.Diff(applied, b.found()); diff != "" {
				return errors.New(diff)
			}
			return nil
		})
	}
	b.update(func(w *widget.Widget) { w.Spec.Values = map[string]string{"a": "3", "c": "1"} })
	b.eventually("the new set", func() error {
		if diff := cmp.Diff(map[string]string{"a": "3", "c": "1", "rendered": ""}, b.found()); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

func TestThePolicyOfTheComponentCountsForWhatWasAppliedLast(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(fragile), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1", "b": "1"}})
	b.until(v1alpha1.StateReady)
	b.update(func(w *widget.Widget) { w.Spec.Values["fails"], w.Spec.DriftPolicy = "1", v1alpha1.DriftPolicyIgnore })
	b.damage()
	damaged := b.found()
	for range 2 {
		b.reconcile()
		if diff := cmp.Diff(damaged, b.found()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}
