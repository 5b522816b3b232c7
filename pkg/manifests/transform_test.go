// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

func adding(key, value string) manifests.Transformer {
	return manifests.WithParameterTransformer(manifests.ParameterTransformerFunc(
		func(namespace, name string, p types.Unstructurable) (types.Unstructurable, error) {
			changed := maps.Clone(p.ToUnstructured())
			changed[key] = value + namespace + name
			return types.UnstructurableMap(changed), nil
		}))
}

func suffixing(suffix string) manifests.Transformer {
	return manifests.WithObjectTransformer(manifests.ObjectTransformerFunc(
		func(namespace, name string, objects []client.Object) ([]client.Object, error) {
			for _, object := range objects {
				object.SetName(object.GetName() + suffix + namespace + name)
			}
			return objects, nil
		}))
}

func TestTransformRunsInOrder(t *testing.T) {
	parameters := types.UnstructurableMap{"x": "0"}
	g := generator(func(_ context.Context, _, _ string, p types.Unstructurable) ([]client.Object, error) {
		return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: p.ToUnstructured()["x"].(string)}}}, nil
	})
	objects, err := manifests.Transform(g, suffixing("a"), adding("x", "1"), suffixing("b"), adding("x", "2")).Generate(t.Context(), "N", "M", parameters)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"2NMaNMbNM"}, namesOf(objects)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if parameters["x"] != "0" {
		t.Error("the parameters were changed")
	}
}

func TestTransformReportsItsTransformers(t *testing.T) {
	parameters := func(f manifests.ParameterTransformerFunc) manifests.Transformer {
		return manifests.WithParameterTransformer(f)
	}
	objects := func(f manifests.ObjectTransformerFunc) manifests.Transformer {
		return manifests.WithObjectTransformer(f)
	}
	tests := []struct {
		name        string
		transformer manifests.Transformer
		want        string
	}{
		{"none", manifests.Transformer{}, "transformer 2 of 2 is nil"},
		{"a nil function", parameters(nil), "transformer 2 of 2 is nil"},
		{"nil parameters", parameters(func(string, string, types.Unstructurable) (types.Unstructurable, error) { return nil, nil }), "transformer 2 of 2: it returned nil parameters"},
		{"an error before", parameters(func(_, _ string, p types.Unstructurable) (types.Unstructurable, error) {
			return p, errors.New("broken")
		}), "transformer 2 of 2: broken"},
		{"a panic before", parameters(func(string, string, types.Unstructurable) (types.Unstructurable, error) { panic("no") }), "transformer 2 of 2: panicked: no"},
		{"a nil object", objects(func(_, _ string, o []client.Object) ([]client.Object, error) { return append(o, nil), nil }), "transformer 2 of 2: object 2 of 2 is nil"},
		{"an error after", objects(func(string, string, []client.Object) ([]client.Object, error) { return nil, errors.New("broken") }), "transformer 2 of 2: broken"},
		{"a panic after", objects(func(string, string, []client.Object) ([]client.Object, error) { panic("no") }), "transformer 2 of 2: panicked: no"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := manifests.Transform(serving("a"), suffixing(""), test.transformer).Generate(t.Context(), "", "", types.UnstructurableMap{})
			if err == nil || got != nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v and the error %v, want it to contain %q", got, err, test.want)
			}
		})
	}
}

func TestATransformerDoesNotGetWhatIsTooMuch(t *testing.T) {
	g := manifests.Transform(returning(shared(40)), manifests.WithObjectTransformer(
		manifests.ObjectTransformerFunc(func(_, _ string, _ []client.Object) ([]client.Object, error) { panic("it was called") })))
	_, err := manifests.Generate(t.Context(), g, "ns", "app", nil)
	if err == nil || !strings.Contains(err.Error(), "transformer 1 of 1: object 1 of 1 (*unstructured.Unstructured a) has more than 268435456 bytes") {
		t.Errorf("got the error %v", err)
	}
}
