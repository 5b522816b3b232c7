// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/internal/untyped"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/manifests/kustomize"
	"github.com/corbel-run/corbel/pkg/types"
)

// goldenFile is what the sample is rendered to.
const goldenFile = "testdata/sample.golden"

// generator returns the generator of a new project for the source in its folder. A generator in Go has none.
func (o Options) generator(project fs.FS) (manifests.Generator, error) {
	switch folder := o.SourceFolder(); o.Form {
	case FormChart:
		chart, err := helm.New(project, folder, helm.Options{KubeVersion: kubeVersion, KeepIntegers: o.Former != nil})
		if err != nil || o.Former == nil || o.Former.Overrides == nil {
			return chart, err
		}
		return manifests.Transform(chart, manifests.WithParameterTransformer(manifests.ParameterTransformerFunc(o.Former.override))), nil
	case FormKustomize:
		return kustomize.New(project, folder, kustomize.Options{})
	default:
		return gotemplate.New(project, folder, gotemplate.Options{})
	}
}

// golden renders the golden file of the project in a folder, as the test of a new project does: compiling and linking that takes
// longer than everything else. It is nil for a generator in Go.
func (o Options) golden(ctx context.Context, folder string) ([]byte, error) {
	if o.Form == FormGo {
		return nil, nil
	}
	generator, err := o.generator(os.DirFS(folder))
	if err != nil {
		return nil, err
	}
	sample, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(o.sampleFile())))
	if err != nil {
		return nil, err
	}
	name, parameters, err := o.sampleIn(sample)
	if err != nil {
		return nil, err
	}
	text, err := renders.GoldenText(manifests.Context{ReconcilerName: o.Reconciler(), Revision: 1}.In(ctx), func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		objects, err := manifests.Generate(ctx, generator, "default", name, types.UnstructurableMap(parameters))
		if err != nil {
			return nil, err
		}
		return untyped.List(objects, nil) // all of them are untyped already
	})
	return []byte(text), err
}

// override puts the values that take precedence over the spec, as the project does.
func (f *Former) override(_, _ string, spec types.Unstructurable) (types.Unstructurable, error) {
	const below = "the spec"
	values := maps.Clone(f.Overrides)
	values[below] = spec.ToUnstructured()
	return types.UnstructurableMap(component.MergedParameters(values, below)), nil
}

// sampleIn returns the name and the parameters of a sample.
func (o Options) sampleIn(text []byte) (name string, parameters map[string]any, err error) {
	var object struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     map[string]any    `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &object); err != nil || object.Spec == nil {
		return object.Metadata.Name, nil, err
	}
	if o.Former != nil {
		return object.Metadata.Name, component.Parameters(object.Spec), nil
	}
	for _, name := range reserved {
		if name != "values" {
			delete(object.Spec, name)
		}
	}
	if _, isObject := object.Spec["values"].(map[string]any); !isObject {
		delete(object.Spec, "values")
	}
	return object.Metadata.Name, component.MergedParameters(object.Spec, "values"), nil
}

// takeGolden takes the golden file out of an update if the author has it as it is rendered. Then it follows from the source and the
// sample, so that there is nothing to merge in it: the function that it returns renders it again.
func (p *project) takeGolden(ctx context.Context, o Options, next map[string][]byte) (renderAgain func(*Report) error) {
	had, known := p.ours[goldenFile]
	// The author may have other options, or fields that are parameters in another form.
	if is, err := o.golden(ctx, p.folder); err != nil || !known || !bytes.Equal(had, is) {
		return func(*Report) error { return nil }
	}
	delete(p.base, goldenFile)
	delete(next, goldenFile)
	return func(report *Report) error {
		if next[goldenFile] = had; len(report.Conflicts) > 0 {
			return nil
		}
		will, err := o.golden(ctx, p.folder)
		if err != nil {
			report.Notes = append(report.Notes, goldenFile+" stays as it is: "+err.Error())
			return nil
		}
		if bytes.Equal(had, will) {
			return nil
		}
		next[goldenFile] = will
		report.Files = append(report.Files, goldenFile)
		slices.Sort(report.Files)
		return replaceFile(filepath.Join(p.folder, filepath.FromSlash(goldenFile)), will)
	}
}
