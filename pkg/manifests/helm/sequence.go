// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// annotationNeedsSubcharts lets the objects of a chart be applied after the objects of the named
// sub-charts are ready.
//
// On: the chart itself, in Chart.yaml
// Format: the names, or aliases, of sub-charts, separated by commas or as a JSON list
// Default: none
// Example: helm.sh/depends-on/subcharts: '["database"]'
// Also: the field depends-on of a dependency in Chart.yaml, for the order among sub-charts
const annotationNeedsSubcharts = "helm.sh/depends-on/subcharts"

// subcharts names the sub-charts that a chart and its sub-charts wait for, as they are called when
// they are rendered.
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

// subchartsOf reads the order of the sub-charts from Chart.yaml. The named sub-charts must be
// there; a sub-chart that is switched off may be named.
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
	resolve := func(references []string) (found []string) {
		for _, name := range references {
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

// calledBy maps each name by which a sub-chart can be referred to, which is its alias or its own
// name, to its names when it is rendered.
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

// checkSequences finds mistakes in the order of sub-charts before anything is rendered.
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

const (
	// annotationGroup puts an object of a chart into a group, which other objects can wait for.
	//
	// On: dependent objects, in templates of charts
	// Format: a name
	// Default: none; the object comes after all groups
	// Example: helm.sh/resource-group: database
	// Also: the annotation apply-order, which takes precedence
	annotationGroup = "helm.sh/resource-group"
	// annotationNeedsGroup lets an object and its group be applied after the named groups of the
	// same chart are ready.
	//
	// On: dependent objects, in templates of charts
	// Format: the names of groups, separated by commas or as a JSON list
	// Default: none
	// Example: helm.sh/depends-on/resource-groups: '["database"]'
	// Also: the annotations apply-order and depends-on, which take precedence
	annotationNeedsGroup = "helm.sh/depends-on/resource-groups"
)

// levels holds the level of each object: the objects of lower levels come first.
type levels map[*unstructured.Unstructured]int

// grouping are the resource groups of one chart.
type grouping struct {
	members map[string][]*unstructured.Unstructured
	needs   map[string][]string
	// rest are the objects without a group.
	rest []*unstructured.Unstructured
}

// groupsOf reads the annotations of the objects of a chart. An object that needs
// groups without being in one is a group of its own.
func groupsOf(objects []*unstructured.Unstructured) (grouping, error) {
	g := grouping{members: map[string][]*unstructured.Unstructured{}, needs: map[string][]string{}}
	var errs []error
	for _, object := range objects {
		annotations := object.GetAnnotations()
		needed, err := namesIn(annotations[annotationNeedsGroup])
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %s: annotation %s: %w", object.GetKind(), object.GetName(), annotationNeedsGroup, err))
		}
		name := annotations[annotationGroup]
		if name == "" && len(needed) == 0 {
			g.rest = append(g.rest, object)
			continue
		}
		if name == "" {
			name = object.GetKind() + " " + object.GetName()
		}
		g.members[name] = append(g.members[name], object)
		g.needs[name] = append(g.needs[name], needed...)
	}
	return g, errors.Join(errs...)
}

// layout puts the groups on levels, each after the groups that it needs. A group without needs that
// no group needs comes after them, with the objects that are in no group. So does a group that
// needs a missing group; that is reported.
func (g grouping) layout() (placed levels, height int, warnings []string, err error) {
	names := slices.Sorted(maps.Keys(g.members))
	once := map[string]int{}
	for _, name := range names {
		once[name] = 1
	}
	if _, err := starts(names, g.needs, once); err != nil {
		return nil, 0, nil, fmt.Errorf("resource groups: %w", err)
	}
	late, warnings := g.late(names)
	inOrder := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return late[name] })
	placed = levels{}
	put := func(names []string, first int) error {
		at, err := starts(names, g.needs, once)
		for _, name := range names {
			for _, object := range g.members[name] {
				placed[object] = first + at[name]
			}
			height = max(height, first+at[name]+1)
		}
		return err
	}
	err = put(inOrder, 0)
	last := height
	err = errors.Join(err, put(slices.DeleteFunc(names, func(name string) bool { return !late[name] }), last))
	for _, object := range g.rest {
		placed[object] = last
		height = max(height, last+1)
	}
	return placed, height, warnings, err
}

// late returns the groups that come last. The needs must not be circular.
func (g grouping) late(names []string) (late map[string]bool, warnings []string) {
	late = map[string]bool{}
	needed := map[string]bool{}
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		for _, other := range g.needs[name] {
			needed[other] = true
			if g.members[other] == nil {
				late[name] = true
				warnings = append(warnings, fmt.Sprintf(
					"resource group %q depends on the group %q, which the chart does not have; it is applied after those that are in order", name, other))
				continue
			}
			visit(other)
			late[name] = late[name] || late[other]
		}
	}
	for _, name := range names {
		visit(name)
	}
	for _, name := range names {
		late[name] = late[name] || len(g.needs[name]) == 0 && !needed[name]
	}
	return late, warnings
}

// starts returns for each name the first level that is free for it: after everything that it needs,
// each of which needs as many levels as its height. If names need each other in a circle, the error
// names them. A needed name that is not among the names counts for nothing.
func starts(names []string, needs map[string][]string, height map[string]int) (map[string]int, error) {
	selected, found := map[string]bool{}, map[string]int{}
	for _, name := range names {
		selected[name] = true
	}
	var path []string
	under := map[string]bool{}
	var visit func(name string) error
	visit = func(name string) error {
		if _, done := found[name]; done || !selected[name] {
			return nil
		}
		path = append(path, name)
		if under[name] {
			return fmt.Errorf("they wait for each other: %s", strings.Join(path[slices.Index(path, name):], " → "))
		}
		under[name] = true
		start := 0
		for _, needed := range needs[name] {
			if err := visit(needed); err != nil {
				return err
			}
			if selected[needed] {
				start = max(start, found[needed]+height[needed])
			}
		}
		found[name], path = start, path[:len(path)-1]
		return nil
	}
	for _, name := range names {
		if err := visit(name); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// nameList is a list of names, or a text that holds one: as YAML or JSON, or
// separated by commas.
type nameList []string

func (l *nameList) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err == nil {
		*l, err = namesIn(text)
		return err
	}
	return json.Unmarshal(data, (*[]string)(l))
}

func namesIn(text string) (nameList, error) {
	var names []string
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "[") {
		if err := fromYaml(text, &names); err != nil {
			return nil, fmt.Errorf("%q is no list of names", text)
		}
	} else {
		names = strings.Split(text, ",")
	}
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" }), nil
}
