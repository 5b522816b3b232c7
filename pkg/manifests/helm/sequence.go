// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const annotationNeedsSubcharts = "helm.sh/depends-on/subcharts"

// subcharts say what a chart and its sub-charts wait for, by the names that the
// sub-charts have when they are rendered.
type subcharts struct {
	own   []string
	needs map[string][]string
}

// listed is a sub-chart in Chart.yaml.
type listed struct {
	Name      string   `json:"name"`
	Alias     string   `json:"alias"`
	DependsOn nameList `json:"depends-on"`
}

// subchartsOf reads what Chart.yaml says about the order of the sub-charts. What
// it names must be there; a sub-chart that is switched off may be named.
func subchartsOf(c *chart.Chart) (subcharts, error) {
	own, err := namesIn(c.Metadata.Annotations[annotationNeedsSubcharts])
	if err != nil {
		return subcharts{}, fmt.Errorf("chart %s: annotation %s: %w", c.Name(), annotationNeedsSubcharts, err)
	}
	var file struct {
		Dependencies []listed `json:"dependencies"`
	}
	if data := chartFileOf(c); len(own) > 0 || bytes.Contains(data, []byte("depends-on")) {
		if err := yaml.Unmarshal(data, &file); err != nil {
			return subcharts{}, fmt.Errorf("chart %s: Chart.yaml: %w", c.Name(), err)
		}
	}
	names := calledBy(c, file.Dependencies)
	var errs []error
	resolve := func(wanted []string) (found []string) {
		for _, name := range wanted {
			if names[name] == nil {
				errs = append(errs, fmt.Errorf("chart %s: depends-on names the sub-chart %q, which the chart does not have", c.Name(), name))
			}
			found = append(found, names[name]...)
		}
		return found
	}
	order := subcharts{own: resolve(own), needs: map[string][]string{}}
	for _, d := range file.Dependencies {
		name := cmp.Or(d.Alias, d.Name)
		order.needs[name] = append(order.needs[name], resolve(d.DependsOn)...)
	}
	return order, errors.Join(errs...)
}

// calledBy returns what the sub-charts are called when they are rendered, by the
// names that they can be referred to by: that one, and the one before an alias.
func calledBy(c *chart.Chart, entries []listed) map[string][]string {
	names := map[string][]string{}
	for _, d := range entries {
		if d.Alias != "" {
			names[d.Name] = append(names[d.Name], d.Alias)
		}
	}
	for _, d := range c.Dependencies() {
		if names[d.Name()] == nil {
			names[d.Name()] = []string{d.Name()}
		}
	}
	for _, d := range entries {
		name := cmp.Or(d.Alias, d.Name)
		names[name] = []string{name}
	}
	return names
}

func chartFileOf(c *chart.Chart) []byte {
	for _, file := range c.Raw {
		if file.Name == "Chart.yaml" {
			return file.Data
		}
	}
	return nil
}

// checkSequences finds what can be wrong about the order of sub-charts before
// anything is rendered.
func checkSequences(c *chart.Chart) error {
	order, err := subchartsOf(c)
	if err == nil {
		names := []string{}
		for name := range order.needs {
			names = append(names, name)
		}
		slices.Sort(names)
		if _, err = starts(names, order.needs, nil); err != nil {
			err = fmt.Errorf("sub-charts of chart %s: %w", c.Name(), err)
		}
	}
	errs := []error{err}
	for _, d := range c.Dependencies() {
		errs = append(errs, checkSequences(d))
	}
	return errors.Join(errs...)
}

// sequence puts the objects of a chart and its sub-charts on levels. One level is
// applied after the one before is ready.
func sequence(c *chart.Chart, objects []templated) (placed levels, warnings []string, err error) {
	byChart := map[string][]*unstructured.Unstructured{}
	paths := chartPaths(c)
	for _, object := range objects {
		byChart[ownerOf(object.file, paths)] = append(byChart[ownerOf(object.file, paths)], object.Unstructured)
	}
	placed, _, warnings, err = layout(c, byChart)
	return placed, warnings, err
}

// layout returns the levels of a chart, and how many they are.
func layout(c *chart.Chart, byChart map[string][]*unstructured.Unstructured) (placed levels, height int, warnings []string, err error) {
	groups, err := groupsOf(byChart[c.ChartFullPath()])
	if err != nil {
		return nil, 0, nil, err
	}
	placed, own, warnings, err := groups.layout()
	if err != nil {
		return nil, 0, nil, fmt.Errorf("chart %s: %w", c.ChartFullPath(), err)
	}
	for i := range warnings {
		warnings[i] = "chart " + c.ChartFullPath() + ": " + warnings[i]
	}
	order, err := subchartsOf(c)
	if err != nil {
		return nil, 0, nil, err
	}
	names, inner, heights := []string{}, map[string]levels{}, map[string]int{}
	for _, d := range c.Dependencies() {
		below, high, more, err := layout(d, byChart)
		if err != nil {
			return nil, 0, nil, err
		}
		names, inner[d.Name()], heights[d.Name()], warnings = append(names, d.Name()), below, high, append(warnings, more...)
	}
	at, err := starts(names, order.needs, heights)
	if err != nil {
		return nil, 0, nil, fmt.Errorf("sub-charts of chart %s: %w", c.ChartFullPath(), err)
	}
	first := 0
	for _, name := range order.own {
		first = max(first, at[name]+heights[name])
	}
	for object := range placed {
		placed[object] += first
	}
	height = first + own
	for _, name := range names {
		for object, level := range inner[name] {
			placed[object] = at[name] + level
		}
		height = max(height, at[name]+heights[name])
	}
	return placed, height, warnings, nil
}

func chartPaths(c *chart.Chart) []string {
	paths := []string{c.ChartFullPath()}
	for _, d := range c.Dependencies() {
		paths = append(paths, chartPaths(d)...)
	}
	return paths
}

// ownerOf returns the path of the chart that a template belongs to.
func ownerOf(file string, paths []string) string {
	owner := ""
	for _, path := range paths {
		if len(path) > len(owner) && strings.HasPrefix(file, path+"/") {
			owner = path
		}
	}
	return owner
}
