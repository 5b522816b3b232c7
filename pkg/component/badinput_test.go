// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// rendering is a generator that always returns the same.
func rendering(objects ...client.Object) manifests.Generator {
	return manifests.GeneratorFunc(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
		return objects, nil
	})
}

func configMap(name string, change func(*corev1.ConfigMap)) *corev1.ConfigMap {
	object := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
	if change != nil {
		change(object)
	}
	return object
}

func annotated(name, annotation, value string) *corev1.ConfigMap {
	return configMap(name, func(c *corev1.ConfigMap) { c.Annotations = map[string]string{operatorName + "/" + annotation: value} })
}

func TestBadInputIsOneClearErrorAndNothingIsWritten(t *testing.T) {
	good := configMap("good", nil)
	var nilMap *corev1.ConfigMap
	tests := []struct {
		name      string
		generator manifests.Generator
		hook      component.HookFunc[*widget.Widget]
		reason    string
		says      []string
	}{
		{name: "a policy that does not exist", generator: rendering(good, annotated("a", "update-policy", "sometimes")), reason: "Invalid", says: []string{"/a: ", "sometimes"}},
		{name: "an order out of range", generator: rendering(good, annotated("a", "apply-order", "40000")), reason: "Invalid", says: []string{"/a: ", "40000"}},
		{name: "generateName", generator: rendering(good, configMap("", func(c *corev1.ConfigMap) { c.GenerateName = "x-" })), reason: "Invalid", says: []string{"generateName"}},
		{name: "no name", generator: rendering(good, configMap("", nil)), reason: "Invalid", says: []string{"ConfigMap", "name"}},
		{name: "a duplicate", generator: rendering(good, configMap("a", nil), configMap("a", nil)), reason: "Invalid", says: []string{"/a"}},
		{name: "an unknown type", generator: rendering(good, configMap("a", func(c *corev1.ConfigMap) { c.APIVersion, c.Kind = "nowhere.example.com/v1", "Thing" })),
			reason: "Invalid", says: []string{"Thing a: type nowhere.example.com/v1 Thing is not served"}},
		{name: "the definition of the component itself", generator: rendering(good, &apiextensionsv1.CustomResourceDefinition{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
			ObjectMeta: metav1.ObjectMeta{Name: "widgets.test.corbel.run"},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "test.corbel.run", Scope: "Namespaced", Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Widget", Plural: "widgets"},
			},
		}), reason: "Invalid", says: []string{"CustomResourceDefinition widgets.test.corbel.run: ", "cannot manage it itself"}},
		{name: "a generator that panics", generator: manifests.GeneratorFunc(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) { panic("oh") }),
			reason: "Error", says: []string{"generator: panic: oh"}},
		{name: "a generator that returns nil objects", generator: rendering(good, nilMap), reason: "Error", says: []string{"generator: object 2 of 2 is nil"}},
		{name: "a generator that returns an error", generator: manifests.GeneratorFunc(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
			return nil, errors.New("value image is required")
		}), reason: "Error", says: []string{"generator: value image is required"}},
		{name: "a hook that panics", generator: rendering(good), hook: func(context.Context, client.Client, *widget.Widget) error { panic("oh") },
			reason: "Error", says: []string{"pre-reconcile hook 1: panicked: oh"}},
		{name: "a hook that changes the spec", generator: rendering(good), hook: func(_ context.Context, _ client.Client, w *widget.Widget) error {
			w.Spec.Values = map[string]string{"a": "b"}
			return nil
		}, reason: "Error", says: []string{"pre-reconcile hook 1: changed the spec of the component"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t, test.generator, component.ReconcilerOptions{}, func(b *bed) {
				if test.hook != nil {
					b.reconciler.WithPreReconcileHook(test.hook)
				}
			})
			b.create(widget.Spec{})
			w, _, err := b.pass()
			state, reason, message := w.Status.GetState()
			if state != component.StateError || reason != test.reason {
				t.Errorf("%s, %s: %s", state, reason, message)
			}
			if stalled := test.reason == "Invalid"; stalled != (err == nil) {
				t.Errorf("the pass returned %v", err)
			}
			for _, text := range test.says {
				if !strings.Contains(message, text) {
					t.Errorf("the message does not say %q: %s", text, message)
				}
			}
			if strings.Contains(message, "\n") || strings.Contains(message, "goroutine") {
				t.Errorf("the message is no sentence: %s", message)
			}
			if _, exists := b.configMap("good"); exists {
				t.Error("a good object was written")
			}
			b.check(b.client.Delete(t.Context(), w))
			b.untilGone()
		})
	}
}

func TestYAMLThatDoesNotParse(t *testing.T) {
	generator, err := manifests.FromFS(fstest.MapFS{"broken.yaml": {Data: []byte("kind: [")}}, ".")
	if err == nil {
		t.Fatal("the broken file is no error")
	}
	b := newBed(t, generator, component.ReconcilerOptions{})
	b.create(widget.Spec{})
	w, _, _ := b.pass()
	if _, _, message := w.Status.GetState(); !strings.Contains(message, "broken.yaml") {
		t.Errorf("the message does not name the file: %s", message)
	}
}

// The bounds of durations are in the schema: a value that cannot be decoded would
// stop the watch of all components.
func TestDurationsAreBoundedByTheSchema(t *testing.T) {
	b := newBed(t, rendering(), component.ReconcilerOptions{})
	tests := []struct {
		value string
		ok    bool
	}{
		{"10m", true}, {"1h30m", true}, {"1.5s", true}, {"99999h99999h99999h99999h99999h", true},
		{"99999h99999h99999h99999h99999h99999h", false}, {"9999999999999h", false}, {"-1m", false}, {"", false}, {"10", false}, {"1d", false},
	}
	for _, test := range tests {
		object := widgetEvery(b.namespace, test.value)
		err := b.client.Create(t.Context(), object, client.DryRunAll)
		if (err == nil) != test.ok {
			t.Errorf("%q: %v", test.value, err)
		}
		if !test.ok {
			continue
		}
		b.check(b.client.Create(t.Context(), object))
		b.check(b.client.Get(t.Context(), client.ObjectKeyFromObject(object), &widget.Widget{}))
		b.check(b.client.Delete(t.Context(), object))
	}
}

// widgetEvery is a widget with a requeue interval, which may be none.
func widgetEvery(namespace, interval string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": namespace, "name": "interval"},
		"spec":     map[string]any{"requeueInterval": interval},
	}}
	object.SetGroupVersionKind(widget.GroupVersion.WithKind("Widget"))
	return object
}
