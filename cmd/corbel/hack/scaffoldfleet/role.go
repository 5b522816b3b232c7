// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/deploy"
	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/internal/rbacrules"
)

// compareRole compares the kinds that the role lets the operator write with the objects that Helm renders of the chart: with the
// default values, with each file in the folder ci, and with those of the sample. An error names the kinds that are rendered
// only as hooks of tests, which are never applied, and those for which there is no reason at all. Optional are the kinds of
// templates that render nothing of that kind with these values.
func (p *project) compareRole(ctx context.Context) (optional []string, err error) {
	scanned, _, err := rbacrules.ScanChart(os.DirFS(p.folder), "chart")
	if err != nil {
		return nil, err
	}
	operator, err := deploy.Render(ctx, os.DirFS(filepath.Join(p.folder, "deploy")), "")
	if err != nil {
		return nil, err
	}
	rules, err := operator.Rules()
	if err != nil {
		return nil, err
	}
	applied, tests, err := p.rendered()
	if err != nil {
		return nil, err
	}
	var useless []error
	for _, rule := range rules {
		// The operator does not do all of this to the objects of its own.
		if !slices.Contains(rule.Verbs, "create") || !slices.Contains(rule.Verbs, "update") || !slices.Contains(rule.Verbs, "delete") {
			continue
		}
		isOfRule := func(k rbacrules.Kind) bool { return k.Group == rule.APIGroups[0] && k.Resource == rule.Resources[0] }
		reason, tested := slices.IndexFunc(scanned, isOfRule), slices.IndexFunc(tests, isOfRule)
		isTest := func(template string) bool { return tested >= 0 && slices.Contains(tests[tested].Origins, template) }
		switch {
		case slices.ContainsFunc(applied, isOfRule):
		case reason < 0:
			useless = append(useless, fmt.Errorf("the role has %s, and no template has it", rule.Resources[0]))
		case !slices.ContainsFunc(scanned[reason].Origins, func(template string) bool { return !isTest(template) }):
			useless = append(useless, fmt.Errorf("the role has %s, which only tests in %s render", rule.Resources[0], strings.Join(scanned[reason].Origins, ", ")))
		default:
			optional = append(optional, scanned[reason].Kind+" ("+strings.Join(scanned[reason].Origins, ", ")+")")
		}
	}
	return optional, errors.Join(useless...)
}

// rendered returns the kinds of objects that Helm applies, and those of its tests with the templates that render them.
func (p *project) rendered() (applied, tests []rbacrules.Kind, err error) {
	files, err := p.values()
	if err != nil {
		return nil, nil, err
	}
	for _, values := range files {
		outputs, definitions, err := render(filepath.Join(p.folder, "chart"), values)
		if err != nil {
			continue // values may be made for another chart, or for a test that has to fail
		}
		hooks, manifests, err := releaseutil.SortManifests(outputs, nil, releaseutil.InstallOrder)
		if err != nil {
			return nil, nil, err
		}
		for _, m := range manifests {
			definitions = append(definitions, m.Content)
		}
		for _, hook := range hooks {
			if slices.ContainsFunc(hook.Events, func(event release.HookEvent) bool { return event != release.HookTest }) {
				definitions = append(definitions, hook.Manifest)
				continue
			}
			kinds, err := kindsIn(hook.Manifest)
			if err != nil {
				return nil, nil, err
			}
			_, template, _ := strings.Cut(hook.Path, "/")
			for i := range kinds {
				kinds[i].Origins = []string{template}
			}
			tests = rbacrules.Merge(tests, kinds)
		}
		kinds, err := kindsIn(definitions...)
		if err != nil {
			return nil, nil, err
		}
		applied = rbacrules.Merge(applied, kinds)
	}
	return applied, tests, nil
}

// values returns the values that the chart is rendered with.
func (p *project) values() ([]map[string]any, error) {
	sets := []map[string]any{{}}
	var sample struct {
		Spec struct {
			Values map[string]any `json:"values"`
		} `json:"spec"`
	}
	text, err := os.ReadFile(filepath.Join(p.folder, "samples", "sample.yaml"))
	if err := errors.Join(err, yaml.Unmarshal(text, &sample)); err != nil {
		return nil, err
	}
	sets = append(sets, sample.Spec.Values)
	err = fs.WalkDir(os.DirFS(p.chart.folder), "ci", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(p.chart.folder, name))
		var values map[string]any
		if yaml.Unmarshal(text, &values) == nil {
			sets = append(sets, values)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return sets, err
}

// render lets Helm render a chart. It returns the outputs of the templates, and the files in its folders crds.
func render(folder string, values map[string]any) (outputs map[string]string, definitions []string, err error) {
	c, err := loader.Load(folder)
	if err != nil {
		return nil, nil, err
	}
	if err := chartutil.ProcessDependencies(c, values); err != nil {
		return nil, nil, err
	}
	given, err := util.ToRenderValues(c, values, common.ReleaseOptions{Name: "sample", Namespace: "default", Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, nil, err
	}
	outputs, err = engine.Render(c, given)
	for name := range outputs {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(outputs, name)
		}
	}
	for _, crd := range c.CRDObjects() {
		definitions = append(definitions, string(crd.File.Data))
	}
	return outputs, definitions, err
}

// kindsIn returns the kinds of the objects in manifests.
func kindsIn(manifests ...string) (kinds []rbacrules.Kind, err error) {
	for _, text := range manifests {
		objects, err := document.Options{LastKeyWins: true}.Decode("a manifest", []byte(text+"\n"))
		if err != nil {
			return nil, err
		}
		kinds = rbacrules.Merge(kinds, rbacrules.OfObjects(document.WithoutLists(objects)))
	}
	return kinds, nil
}
