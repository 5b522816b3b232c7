// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// mapping is a map under construction.
type mapping struct {
	values map[string]any
	lines  map[string]int // where a key was set; merged keys have none
}

func newMapping(size int) *mapping {
	return &mapping{values: make(map[string]any, size), lines: make(map[string]int, size)}
}

// fill sets the keys of the node, first its own ones and then those that it
// merges in, which never win over its own.
func (c *converter) fill(m *mapping, n *yaml.Node, depth int) (ok bool) {
	ok = true
	for i := 0; i+1 < len(n.Content); i += 2 {
		if isMerge(n.Content[i]) {
			continue
		}
		ok = c.set(m, n.Content[i], n.Content[i+1], depth) && ok
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if isMerge(n.Content[i]) {
			ok = c.merge(m, n.Content[i+1], depth) && ok
		}
	}
	return ok
}

func (c *converter) set(m *mapping, keyNode, valueNode *yaml.Node, depth int) bool {
	key, err := keyOf(keyNode)
	if err != nil {
		c.fail(keyNode, "%w", err)
		return false
	}
	// A key is kept in its form as a text, and may be an alias itself.
	if (len(c.open) > 0 || keyNode.Kind == yaml.AliasNode) && !c.expand(&yaml.Node{Line: keyNode.Line, Value: key}) {
		return false
	}
	line := c.offset + keyNode.Line
	if first, twice := m.lines[key]; twice {
		c.fail(keyNode, "key %q is set twice, first in line %d", key, first)
		return false
	}
	m.lines[key] = line
	value, ok := c.value(valueNode, depth+1)
	m.values[key] = value
	return ok
}

// merge adds the keys of a map, or of a list of maps, that are not there yet.
func (c *converter) merge(m *mapping, n *yaml.Node, depth int) bool {
	switch n.Kind {
	case yaml.AliasNode:
		_, ok := c.alias(n, func(target *yaml.Node) (any, bool) {
			return nil, c.merge(m, target, depth)
		})
		return ok
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if item.Kind == yaml.SequenceNode || !c.merge(m, item, depth+1) {
				return c.refuseMerge(item)
			}
		}
		return true
	case yaml.MappingNode:
		value, ok := c.value(n, depth+1)
		merged, _ := value.(map[string]any)
		for key, v := range merged {
			if _, exists := m.values[key]; !exists {
				m.values[key] = v
			}
		}
		return ok
	default:
		return c.refuseMerge(n)
	}
}

func (c *converter) refuseMerge(n *yaml.Node) bool {
	if len(c.errs) == 0 {
		c.fail(n, "the value of << must be a map or a list of maps")
	}
	return false
}

func isMerge(key *yaml.Node) bool {
	return key.Kind == yaml.ScalarNode && key.Value == "<<" && (key.Tag == "!!merge" || key.Tag == "" && key.Style == 0)
}

// keyOf returns a key in the form that it has in JSON.
func keyOf(n *yaml.Node) (string, error) {
	for range maxDepth {
		if n.Kind != yaml.AliasNode {
			break
		}
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		return "", errors.New("the key of a map must be a string, not a map or a list")
	}
	raw, err := resolve(n)
	if err != nil {
		return "", err
	}
	switch raw := raw.(type) {
	case string:
		return raw, nil
	case bool:
		return strconv.FormatBool(raw), nil
	case int64:
		return strconv.FormatInt(raw, 10), nil
	case float64:
		if isTooLarge(raw, n.Value) {
			return "", tooLarge(n.Value)
		}
		if math.IsNaN(raw) || math.IsInf(raw, 0) {
			break
		}
		// Only 32 bits: this is what the common parser makes of such a key.
		return strconv.FormatFloat(raw, 'g', -1, 32), nil
	}
	return "", fmt.Errorf("the key of a map must be a string, not %q", n.Value)
}
