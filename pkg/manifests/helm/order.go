// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// starts returns for each name the first level that is free for it: after
// everything that it needs, each of which takes as many levels as its height
// says. If names need each other in a circle, the error names them. What is
// needed and not among the names counts for nothing.
func starts(names []string, needs map[string][]string, height map[string]int) (map[string]int, error) {
	wanted, found := map[string]bool{}, map[string]int{}
	for _, name := range names {
		wanted[name] = true
	}
	var path []string
	under := map[string]bool{}
	var visit func(name string) error
	visit = func(name string) error {
		if _, done := found[name]; done || !wanted[name] {
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
			if wanted[needed] {
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

// UnmarshalJSON implements json.Unmarshaler.
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
