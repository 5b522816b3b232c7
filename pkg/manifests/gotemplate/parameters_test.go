// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
)

// Users set a size; the generator wants numbers.
func ExampleNewParameters() {
	fsys := folder(map[string]string{"sizes.yaml": "replicas: {{ get (dict \"small\" 1 \"large\" 5) .Values.size }}\nname: {{ .Name }}\n"})
	transformer, err := gotemplate.NewParameters(fsys, "sizes.yaml", gotemplate.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	generator := manifests.GeneratorFunc(func(_ context.Context, _, _ string, parameters types.Unstructurable) ([]client.Object, error) {
		fmt.Println(parameters.ToUnstructured())
		return nil, nil
	})
	transformed := manifests.Transform(generator, manifests.WithParameterTransformer(transformer))
	if _, err := manifests.Generate(context.Background(), transformed, "default", "shop", types.UnstructurableMap{"size": "large"}); err != nil {
		fmt.Println(err)
	}
	// Output: map[name:shop replicas:5]
}

func TestParametersFromATemplate(t *testing.T) {
	transform := func(file, text string) (map[string]any, error) {
		p, err := gotemplate.NewParameters(folder(map[string]string{file: text}), file, gotemplate.Options{})
		if err != nil {
			if _, again := p.TransformParameters("ns", "app", nil); again == nil || again.Error() != err.Error() {
				t.Errorf("got the errors %v and %v", err, again)
			}
			return nil, err
		}
		changed, err := p.TransformParameters("ns", "app", types.UnstructurableMap{"a": 1})
		if err != nil {
			return nil, err
		}
		return changed.ToUnstructured(), nil
	}
	for text, want := range map[string]map[string]any{"b: {{ .Values.a }}": {"b": int64(1)}, "{{ if .Values.none }}x: y{{ end }}": {}} {
		for _, file := range []string{"p.yaml", "_p.tpl", "sub/.p"} {
			got, err := transform(file, text)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: error %v, -want +got:\n%s", file, err, diff)
			}
		}
	}
	for text, want := range map[string]string{
		"- a": "p.yaml (rendered): want a map", "a: [": "p.yaml (rendered): line 1: ", "{{ env \"HOME\" }}": "env is not available",
		"{{ lookup \"v1\" \"Secret\" \"a\" \"b\" }}": "lookup is not available", "{{ nonsense }}": "p.yaml:1: ",
	} {
		_, err := transform("p.yaml", text)
		check.Fails(t, err, want)
	}
	_, err := gotemplate.NewParameters(folder(map[string]string{"d/p.yaml": ""}), "d", gotemplate.Options{})
	check.Fails(t, err, "d: it is a folder, want a file")
}
