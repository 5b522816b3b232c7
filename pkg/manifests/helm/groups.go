// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	annotationGroup      = "helm.sh/resource-group"
	annotationNeedsGroup = "helm.sh/depends-on/resource-groups"
)

// levels say after how many others an object comes.
type levels map[*unstructured.Unstructured]int

// grouping are the resource groups of one chart.
type grouping struct {
	members map[string][]*unstructured.Unstructured
	needs   map[string][]string
	// rest are the objects that say nothing.
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

// layout puts the groups on levels, each after those that it needs. A group that
// nothing is said about comes after them, with the objects that are in none. So
// does one that needs a group which is not there; that is told.
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
