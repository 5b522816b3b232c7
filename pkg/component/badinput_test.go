// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
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

// manifest is a row about an object that is no legal dependent; beside it there is a good one.
func manifest(name string, object client.Object, says ...string) badInput {
	return badInput{name: name, generator: rendering(configMap("good", nil), object), state: v1alpha1.StateError, reason: vocabulary.ReasonInvalid, says: says}
}

// broken is a row about a generator that does not do what it should.
func broken(name string, says string, generate manifests.GeneratorFunc) badInput {
	return badInput{name: name, generator: generate, state: v1alpha1.StateError, reason: vocabulary.ReasonError, says: []string{says}}
}

// read makes an object of text, as generators do that read files.
func read(text string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), object); err != nil {
		panic(err)
	}
	return object
}

func TestBadInputIsOneClearErrorAndNothingIsWritten(t *testing.T) {
	var nilMap *corev1.ConfigMap
	tests := []badInput{
		manifest("a policy that does not exist", annotated("a", "update-policy", "sometimes"), "/a: ", "sometimes"),
		manifest("generateName", configMap("", func(c *corev1.ConfigMap) { c.GenerateName = "x-" }), "generateName"),
		manifest("no name", configMap("", nil), "ConfigMap", "name"),
		manifest("a name that is a path", configMap("../x", nil), "../x"),
		manifest("a duplicate", configMap("good", nil), "/good"),
		manifest("a type that is not served", read("{apiVersion: nowhere.example.com/v1, kind: Thing, metadata: {name: a}}"),
			"Thing a: type nowhere.example.com/v1 Thing is not served"),
		manifest("no type", &unstructured.Unstructured{Object: object{"metadata": object{"name": "a"}}}, "kind"),
		manifest("lists in lists without an end", nested(20), "List"),
		manifest("a dependency that is not rendered", annotated("a", "depends-on", "ConfigMap/nowhere"), "/a: ", "nowhere"),
		manifest("the definition of the component itself", read("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.test.corbel.run}, "+
			"spec: {group: test.corbel.run, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [{name: v1, served: true}]}}"),
			"CustomResourceDefinition widgets.test.corbel.run: ", "cannot manage it itself"),
		manifest("the component itself", read("{apiVersion: test.corbel.run/v1, kind: Widget, metadata: {name: main}}"), "Widget ", "/main"),
		broken("a generator that panics", "generator: panicked: oh", func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) { panic("oh") }),
		broken("a generator that returns nil objects", "generator: object 2 of 2 is nil", rendering(configMap("good", nil), nilMap).Generate),
		broken("a generator that returns an error", "generator: value image is required", func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
			return nil, errors.New("value image is required")
		}),
		broken("a generator with an error of many lines", "generator: line 1", func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
			return nil, errors.New("line 1\n\tline 2\n" + strings.Repeat("x\n", 5000))
		}),
	}
	for _, test := range tests {
		t.Run(test.name, test.run)
	}
}

// nested is a list of a list and so on, with a config map at the end.
func nested(depth int) *unstructured.Unstructured {
	inner := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "deep"}}
	for range depth {
		inner = object{"apiVersion": "v1", "kind": "List", "items": []any{inner}}
	}
	return &unstructured.Unstructured{Object: inner}
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
