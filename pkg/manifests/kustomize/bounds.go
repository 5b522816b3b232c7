// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"bytes"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// maxDepth limits how deep a YAML file may be nested, because the library walks
// it recursively.
const maxDepth = 500

// checkBounds refuses a YAML text that is nested too deep, or whose aliases
// expand to too much: the library expands all of them. What does not parse is
// left to the library, which says why.
func checkBounds(data []byte, limit int) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the YAML parser failed")
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	total := 0
	for {
		var node yaml.Node
		if err := decoder.Decode(&node); err != nil {
			return nil
		}
		m := &measure{limit: limit, known: map[*yaml.Node]extent{}}
		size, err := m.of(&node)
		if err != nil {
			return err
		}
		if total += size.values; total > limit {
			return &LimitError{Message: fmt.Sprintf("it expands to more than %d values", limit)}
		}
	}
}

// extent is how much a node expands to.
type extent struct{ values, depth int }

type measure struct {
	limit int
	known map[*yaml.Node]extent
	depth int
}

// of returns the extent of a node, each alias counted as what it stands for.
func (m *measure) of(n *yaml.Node) (extent, error) {
	if known, ok := m.known[n]; ok {
		if known.values == 0 {
			return extent{}, errors.New("an alias stands inside of what it refers to")
		}
		return known, nil
	}
	if m.depth++; m.depth > maxDepth {
		return extent{}, &LimitError{Message: fmt.Sprintf("it is nested deeper than %d levels", maxDepth)}
	}
	defer func() { m.depth-- }()
	if n.Kind == yaml.AliasNode {
		return m.of(n.Alias)
	}
	m.known[n] = extent{}
	sum := extent{values: 1}
	for _, child := range n.Content {
		e, err := m.of(child)
		if err != nil {
			return extent{}, err
		}
		sum.values, sum.depth = sum.values+e.values, max(sum.depth, e.depth)
		if sum.values > m.limit {
			return extent{}, &LimitError{Message: fmt.Sprintf("its aliases expand to more than %d values", m.limit)}
		}
	}
	if sum.depth++; sum.depth > maxDepth {
		return extent{}, &LimitError{Message: fmt.Sprintf("its aliases expand to more than %d levels", maxDepth)}
	}
	m.known[n] = sum
	return sum, nil
}
