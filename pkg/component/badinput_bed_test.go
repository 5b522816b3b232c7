// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// badInput is one way to give an operator something wrong, and what becomes of it.
type badInput struct {
	name string

	// The component, as a user writes it.
	called      string // main by default
	spec        map[string]any
	annotations map[string]string
	status      func(*widget.Status) // written by another client before the first reconcile
	// What the operator does, and what is there before: config maps of the spec's
	// values by default, and nothing.
	generator manifests.Generator
	given     func(*bed)

	// The verdict of the reconcile; nothing said means that all is well.
	state  v1alpha1.State
	reason string
	says   []string
}

// run runs a reconcile over the bad component and, beside it, over one that is sound. Whatever is wrong, the
// message is one short sentence without a secret, nothing but the status is written, at rest
// nothing at all, the other component gets ready, and both can be deleted.
func (test badInput) run(t *testing.T) {
	b := newBed(t, test.generate(), component.ReconcilerOptions{}, func(b *bed) {
		if test.given != nil {
			test.given(b)
		}
	})
	bad, sound := b.widgetOf(test.called, test.spec), b.widgetOf("sound", map[string]any{"values": map[string]any{"sound": "1"}})
	bad.SetAnnotations(test.annotations)
	b.check(b.client.Create(t.Context(), bad))
	b.check(b.client.Create(t.Context(), sound))
	if test.status != nil {
		w := &widget.Widget{}
		b.check(b.client.Get(t.Context(), client.ObjectKeyFromObject(bad), w))
		test.status(&w.Status)
		b.check(b.client.Status().Update(t.Context(), w))
	}
	b.resetRequests()
	w, err := b.passOf(bad.GetName())
	test.check(t, w, err)
	if test.state != "" {
		b.onlyStatus()
		b.resetRequests()
		b.passOf(bad.GetName())
		if writes := b.writes(); len(writes) > 0 {
			t.Errorf("writes at rest: %v", writes)
		}
	}
	if w, err := b.passOf("sound"); !w.Status.IsReady() {
		t.Errorf("another component is not ready: %v", err)
	}
	for _, object := range []*unstructured.Unstructured{bad, sound} {
		b.check(b.client.Delete(t.Context(), object))
		b.untilGoneOf(object.GetName())
	}
	for _, name := range []string{"good", "sound"} {
		if _, exists := b.configMap(name); exists {
			t.Errorf("config map %s is still there", name)
		}
	}
}

// generate keeps what is wrong away from the component that is sound.
func (test badInput) generate() manifests.Generator {
	return manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, p types.Unstructurable) ([]client.Object, error) {
		if _, sound := p.(*widget.Spec).Values["sound"]; sound || test.generator == nil {
			return configMaps(ctx, namespace, name, p)
		}
		return test.generator.Generate(ctx, namespace, name, p)
	})
}

func (test badInput) check(t *testing.T, w *widget.Widget, err error) {
	t.Helper()
	state, reason, message := w.Status.GetState()
	if test.state == "" {
		test.state, test.reason = v1alpha1.StateReady, vocabulary.ReasonReady
	}
	if state != test.state || reason != test.reason {
		t.Errorf("%s, %s: %s (%v)", state, reason, message, err)
	}
	for _, text := range test.says {
		if !strings.Contains(message, text) {
			t.Errorf("the message does not say %q: %s", text, message)
		}
	}
	if strings.ContainsAny(message, "\n\t") || strings.Contains(message, "goroutine") || strings.Contains(message, canary) || len(message) > 1024 {
		t.Errorf("the message is no short sentence: %s", message)
	}
	// What only a person can mend is not tried again and again.
	hopeless := reason == vocabulary.ReasonInvalid || reason == vocabulary.ReasonSpecInvalid
	if stalled := apimeta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionStalled); stalled != hopeless {
		t.Errorf("stalled is %t", stalled)
	}
	if retried := reason == vocabulary.ReasonError; retried != (err != nil) {
		t.Errorf("the reconcile returned %v", err)
	}
}

// onlyStatus checks that since the last resetRequests nothing was written but the component itself.
func (b *bed) onlyStatus() {
	b.Helper()
	for _, write := range b.writes() {
		if !strings.HasPrefix(write, "patch widgets") && !strings.Contains(write, "digest-key") {
			b.Errorf("something was written: %s", write)
		}
	}
}

func (b *bed) widgetOf(name string, spec map[string]any) *unstructured.Unstructured {
	if name == "" {
		name = "main"
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(widget.GroupVersion.WithKind("Widget"))
	object.SetNamespace(b.namespace)
	object.SetName(name)
	return object
}

// passOf runs a reconcile over a component of any name.
func (b *bed) passOf(name string) (*widget.Widget, error) {
	b.Helper()
	_, err := b.reconciler.Reconcile(b.Context(), ctrl.Request{NamespacedName: b.key(name)})
	w := &widget.Widget{}
	b.check(b.client.Get(b.Context(), b.key(name), w))
	conditionstest.Check(b, conditions.For(w, &w.Status.Conditions))
	return w, err
}

func (b *bed) untilGoneOf(name string) {
	b.Helper()
	b.eventually("component "+name+" to go", func() error {
		_, passErr := b.reconciler.Reconcile(b.Context(), ctrl.Request{NamespacedName: b.key(name)})
		list := &widget.WidgetList{}
		b.check(b.client.List(b.Context(), list, client.InNamespace(b.namespace)))
		if i := slices.IndexFunc(list.Items, func(w widget.Widget) bool { return w.Name == name }); i >= 0 {
			_, reason, message := list.Items[i].Status.GetState()
			return fmt.Errorf("%s: %s (%w)", reason, message, passErr)
		}
		return nil
	})
}
