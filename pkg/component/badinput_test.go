// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
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
	tests := []badInput{
		manifest("a policy that does not exist", annotated("a", "update-policy", "sometimes"), "/a: ", "sometimes"),
		manifest("a type that is not served", read("{apiVersion: nowhere.example.com/v1, kind: Thing, metadata: {name: a}}"),
			"Thing a: type nowhere.example.com/v1 Thing is not served"),
		manifest("the definition of the component itself", read("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.test.corbel.run}, "+
			"spec: {group: test.corbel.run, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [{name: v1, served: true}]}}"),
			"CustomResourceDefinition widgets.test.corbel.run: ", "cannot manage it itself"),
		broken("a generator that panics", "generator: panicked: oh", func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) { panic("oh") }),
		broken("a generator with an error of many lines", "generator: line 1", func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
			return nil, errors.New("line 1\n\tline 2\n" + strings.Repeat("x\n", 5000))
		}),
	}
	for _, test := range tests {
		t.Run(test.name, test.run)
	}
}

// A value that cannot be decoded would stop the watch of all components.
func TestTheSchemaRefusesBadSpecs(t *testing.T) {
	b := newBed(t, rendering(), component.ReconcilerOptions{})
	long := strings.Repeat("x", 300)
	every := func(interval string) object { return object{"requeueInterval": interval} }
	for _, test := range []struct {
		spec object
		says string // empty: it is stored, and can be read
	}{
		{every("10m"), ""}, {every("1h30m"), ""}, {every("1.5s"), ""}, {every("99999h99999h99999h99999h99999h"), ""},
		{every("99999h99999h99999h99999h99999h99999h"), "spec.requeueInterval"}, {every("9999999999999h"), "spec.requeueInterval"}, {every("-1m"), "spec.requeueInterval"},
		{every(""), "spec.requeueInterval"}, {every("10"), "spec.requeueInterval"}, {every("1d"), "spec.requeueInterval"}, {every("abc"), "spec.requeueInterval"},
		{object{"timeout": strings.Repeat("9", 10_000_000)}, "limit is"},
		{object{"serviceAccountName": long}, "spec.serviceAccountName"}, {object{"namespace": long[:64]}, "spec.namespace"}, {object{"name": long}, "spec.name"},
		{object{"password": object{"key": "k"}}, "spec.password.name"}, {object{"updatePolicy": "Sometimes"}, "spec.updatePolicy"},
	} {
		w := b.widgetOf("main", test.spec)
		if err := b.client.Create(t.Context(), w); test.says != "" {
			if rejected := apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err); !rejected || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%.100v: the API server says %v", test.spec, err)
			}
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		b.get()
		b.check(b.client.Delete(t.Context(), w))
	}
}
