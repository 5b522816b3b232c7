// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"fmt"
	"slices"
	"strings"
)

// Select returns a copy of the tree with the named fields only, in the order of the tree. A path
// is the keys of a field, with dots between them ("image.tag"); the path of an object selects all
// that is below it. Elements of lists have no path. Unknown paths are one error.
func Select(root *Field, paths []string) (*Field, error) {
	known := Paths(root)
	var problems []string
	wanted := map[string]bool{}
	for _, path := range paths {
		path = strings.TrimSpace(path)
		if !slices.Contains(known, path) {
			problems = append(problems, fmt.Sprintf("%q%s", path, suggestion(path, known)))
		}
		wanted[path] = true
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no values are selected: name at least one, like %q", "image.tag")
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("the chart has no values with these names: %s", strings.Join(problems, "; "))
	}
	return filter(root, "", func(path string) bool { return wanted[path] }), nil
}

// Paths returns the paths of all fields of a tree, in their order.
func Paths(root *Field) []string { return pathsBelow(root, "") }

// pathsBelow returns the paths of all fields of an object, in their order.
func pathsBelow(object *Field, path string) []string {
	var paths []string
	for _, field := range object.Fields {
		below := join(path, field.Key)
		paths = append(paths, below)
		if field.Type == Object {
			paths = append(paths, pathsBelow(field, below)...)
		}
	}
	return paths
}

// suggestion names up to three paths that are like an unknown one.
func suggestion(path string, known []string) string {
	type near struct {
		path     string
		distance int
	}
	var found []near
	_, last := cutLast(path)
	for _, candidate := range known {
		d := distance(strings.ToLower(path), strings.ToLower(candidate))
		if _, key := cutLast(candidate); last != "" && strings.EqualFold(key, last) {
			// The same key elsewhere.
			d = min(d, 2)
		}
		if d <= max(2, len(path)/4) {
			found = append(found, near{candidate, d})
		}
	}
	slices.SortStableFunc(found, func(a, b near) int { return a.distance - b.distance })
	var quoted []string
	for _, candidate := range found[:min(3, len(found))] {
		quoted = append(quoted, fmt.Sprintf("%q", candidate.path))
	}
	if len(quoted) == 0 {
		return ""
	}
	return " (like " + strings.Join(quoted, ", ") + ")"
}

// cutLast splits a path before its last key.
func cutLast(path string) (parent, key string) {
	if i := strings.LastIndex(path, "."); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

// distance returns how many characters have to be inserted, removed or replaced between two texts.
func distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i, r := range from {
		diagonal := row[0]
		row[0] = i + 1
		for j, s := range to {
			cost := diagonal
			if r != s {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(to)]
}
