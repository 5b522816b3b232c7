// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// sharer is a generator with one shared type of a version.
type sharer struct {
	manifests.GeneratorFunc
	name, version string
}

func (s sharer) SharedTypes() []types.SharedType {
	if s.version == "panic" {
		panic("no types")
	}
	if s.version == "rendered" {
		return []types.SharedType{{Name: s.name, Version: s.version}}
	}
	definition := &unstructured.Unstructured{Object: map[string]any{"kind": "CustomResourceDefinition", "metadata": map[string]any{"name": s.name}}}
	return []types.SharedType{{Name: s.name, Version: s.version, Definition: definition}}
}

func TestTheSharedTypesOfACompositionAreThoseOfItsGenerators(t *testing.T) {
	plain, a, b := serving("x"), sharer{name: "a", version: "1"}, sharer{name: "b", version: "2"}
	labelled := func(err error) manifests.Transformer {
		return manifests.WithObjectTransformer(manifests.ObjectTransformerFunc(func(namespace, name string, objects []client.Object) ([]client.Object, error) {
			for _, object := range objects {
				object.SetLabels(map[string]string{"by": namespace + name + "us"})
			}
			return objects, err
		}))
	}
	numbered := manifests.WithObjectTransformer(manifests.ObjectTransformerFunc(func(_, _ string, objects []client.Object) ([]client.Object, error) {
		objects[0].(*unstructured.Unstructured).Object["spec"] = map[string]any{"number": 1}
		return objects, nil
	}))
	for name, test := range map[string]struct {
		generator manifests.Generator
		want      []string
	}{
		"none":                       {plain, nil},
		"nil":                        {nil, nil},
		"a panic":                    {sharer{version: "panic"}, nil},
		"several":                    {manifests.Join(plain, a, b), []string{"a 1 ", "b 2 "}},
		"the first of two":           {manifests.Join(a, sharer{name: "a", version: "3"}), []string{"a 1 "}},
		"a transformer":              {manifests.Transform(a, labelled(nil)), []string{"a 1 us"}},
		"a transformer that fails":   {manifests.Transform(a, labelled(errors.New("no"))), nil},
		"a number that JSON has not": {manifests.Transform(a, numbered), []string{"a 1 "}},
		"a definition that each component renders": {manifests.Transform(sharer{name: "a", version: "rendered"}, labelled(nil)), []string{"a rendered "}},
		"a transformer of parameters":              {manifests.Transform(a, suffixing("x")), []string{"a 1 "}},
		"isolation":                                {manifests.Isolated(a, manifests.Isolation{Name: "sharer"}), []string{"a 1 "}},
	} {
		var got []string
		for _, shared := range renders.SharedTypes(test.generator) {
			text := shared.Name + " " + shared.Version + " "
			if shared.Definition != nil {
				text += shared.Definition.DeepCopy().GetLabels()["by"] // the copy would panic with an int
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
