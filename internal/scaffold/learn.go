// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/scaffold/rules"
	"github.com/corbel-run/corbel/internal/scaffold/values"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/manifests/kustomize"
	"github.com/corbel-run/corbel/pkg/types"
)

// learned is what a source says.
type learned struct {
	code   values.Code
	fields []field
	rights string         // manifests
	sample map[string]any // values of a chart with which it renders
	notes  []string
}

// learn reads the source in the folder of a project.
func learn(ctx context.Context, o Options, stage string) (l learned, err error) {
	source := os.DirFS(stage)
	if o.Form == FormChart {
		if err := l.learnValues(o, source); err != nil {
			return l, err
		}
	}
	kinds, err := l.kinds(ctx, o, source)
	if err != nil {
		return l, err
	}
	l.rights, err = rules.Operator{
		Account: o.Name, Group: o.Group, Resource: o.Plural(), Namespace: "{{ .Release.Namespace }}", Namespaced: o.Namespaced,
	}.YAML(kinds)
	return l, err
}

// reserved are the fields of a spec that are not those of values.
var reserved = []string{"suspend", "suspendUntil", "suspendReason", "timeout", "rollbackOnFailure", "patches", "images", "values"}

// learnValues makes types of the values of a chart.
func (l *learned) learnValues(o Options, source fs.FS) error {
	text, err := optionalFile(source, "chart/values.yaml")
	if err != nil {
		return err
	}
	schema, err := optionalFile(source, "chart/values.schema.json")
	if err != nil {
		return err
	}
	root, notes, err := values.Learn(values.Source{Values: text, Schema: schema})
	if err != nil {
		return fmt.Errorf("the values of the chart: %w", err)
	}
	switch {
	case len(o.Fields) > 0:
		if root, err = values.Select(root, o.Fields); err != nil {
			return fmt.Errorf("--field: %w", err)
		}
	case o.Spec == SpecCurated:
		root, notes = values.Curate(root), nil
	case o.Spec == SpecValues:
		return nil
	}
	root.Fields = slices.DeleteFunc(root.Fields, func(f *values.Field) bool {
		taken := slices.Contains(reserved, f.Key)
		if taken {
			notes = append(notes, fmt.Sprintf("the value %s has the name of a field of every component: it is set as values.%s", f.Key, f.Key))
		}
		return taken
	})
	l.notes = append(l.notes, notes...)
	if len(root.Fields) == 0 {
		return nil
	}
	l.fields = rows(root)
	l.code, err = values.GoTypes(root, o.Kind)
	return err
}

// optionalFile reads a file; one that does not exist is empty.
func optionalFile(source fs.FS, name string) ([]byte, error) {
	content, err := fs.ReadFile(source, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// kinds returns the kinds of objects that the source can render, and chooses the sample.
func (l *learned) kinds(ctx context.Context, o Options, source fs.FS) ([]rules.Kind, error) {
	switch o.Form {
	case FormChart:
		scanned, unknown, err := rules.ScanChart(source, "chart")
		if err != nil {
			return nil, err
		}
		for _, place := range unknown {
			l.notes = append(l.notes, "the kind of an object cannot be read in "+place+": add its rule to deploy/templates/rbac.yaml, if the operator lacks it")
		}
		rendered, err := l.renderSamples(ctx, o, source)
		if err != nil {
			return nil, err
		}
		return rules.Merge(scanned, rendered), nil
	case FormKustomize:
		generator, err := kustomize.New(source, "kustomization", kustomize.Options{})
		if err != nil {
			return nil, err
		}
		return rendered(ctx, o, generator, nil)
	case FormYAML:
		generator, err := gotemplate.New(source, "manifests", gotemplate.Options{})
		if err != nil {
			return nil, err
		}
		return rendered(ctx, o, generator, nil)
	default:
		return []rules.Kind{{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true, Rendered: true, Origins: []string{"generate.go"}}}, nil
	}
}

// renderSamples renders the chart with its default values, and with those in its folder ci. The first
// that can be rendered are those of the sample.
func (l *learned) renderSamples(ctx context.Context, o Options, source fs.FS) ([]rules.Kind, error) {
	generator, err := helm.New(source, "chart", helm.Options{KubeVersion: kubeVersion})
	if err != nil {
		return nil, fmt.Errorf("the chart cannot be loaded: %w", err)
	}
	samples, err := fs.Glob(source, "chart/ci/*.yaml")
	if err != nil {
		return nil, err
	}
	var all []rules.Kind
	var failures []error
	found := false
	for _, name := range append([]string{""}, samples...) {
		var chosen map[string]any
		if name != "" {
			text, err := fs.ReadFile(source, name)
			if err != nil {
				return nil, err
			}
			if err := yaml.Unmarshal(text, &chosen); err != nil {
				continue // it is no file with values
			}
		}
		kinds, err := rendered(ctx, o, generator, chosen)
		if err != nil {
			failures = append(failures, fmt.Errorf("with %s: %w", describe(name), err))
			continue
		}
		if !found {
			l.sample, found = chosen, true
		}
		all = rules.Merge(all, kinds)
	}
	if !found {
		l.notes = append(l.notes, fmt.Sprintf("no sample can be rendered; add the values that the chart needs to the sample: %v", errors.Join(failures...)))
	}
	return all, nil
}

func describe(sample string) string {
	if sample == "" {
		return "the default values"
	}
	return path.Base(filepath.ToSlash(sample))
}

// rendered returns the kinds of what a generator renders.
func rendered(ctx context.Context, o Options, generator manifests.Generator, parameters map[string]any) ([]rules.Kind, error) {
	ctx = manifests.WithComponentRevision(manifests.WithReconcilerName(ctx, o.Group), 1)
	objects, err := manifests.Generate(ctx, generator, "default", "sample", types.UnstructurableMap(parameters))
	if err != nil {
		return nil, err
	}
	var plain []*unstructured.Unstructured
	for _, object := range objects {
		plain = append(plain, asUnstructured(object))
	}
	return rules.OfObjects(plain), nil
}

// asUnstructured returns an object of a generator of files, which are all unstructured.
func asUnstructured(object client.Object) *unstructured.Unstructured {
	plain, ok := object.(*unstructured.Unstructured)
	if !ok {
		plain = &unstructured.Unstructured{}
		plain.SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
		plain.SetName(object.GetName())
	}
	return plain
}

// trimmed returns the end of a text that a program has printed.
func trimmed(text string) string {
	text = strings.TrimSpace(text)
	if lines := strings.Split(text, "\n"); len(lines) > 12 {
		text = "…\n" + strings.Join(lines[len(lines)-12:], "\n")
	}
	return text
}
