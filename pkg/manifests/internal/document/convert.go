// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

const (
	// maxDepth limits how deep a document may be nested. The API server
	// accepts more, but nothing that is meant seriously comes near.
	maxDepth = 500
	// maxAliased limits how many values the aliases of a document may expand to.
	maxAliased = 100_000
	// maxErrors limits how many mistakes of one document are reported.
	maxErrors = 20
)

// converter turns a node into a value.
type converter struct {
	offset  int
	aliased int
	open    []*yaml.Node // the anchored nodes whose aliases are being expanded
	errs    []*Error
	stopped bool
}

func (c *converter) fail(n *yaml.Node, format string, args ...any) {
	if len(c.errs) == maxErrors {
		c.errs = append(c.errs, &Error{Line: c.offset + n.Line, Err: errors.New("there are more mistakes in this document")})
		c.stopped = true
	}
	if !c.stopped {
		c.errs = append(c.errs, &Error{Line: c.offset + n.Line, Err: fmt.Errorf(format, args...)})
	}
}

// value returns the value of the node; ok is false if there is a mistake
// anywhere in it.
func (c *converter) value(n *yaml.Node, depth int) (value any, ok bool) {
	if c.stopped {
		return nil, false
	}
	if depth > maxDepth {
		c.fail(n, "the document is nested deeper than %d levels", maxDepth)
		c.stopped = true
		return nil, false
	}
	if len(c.open) > 0 {
		if c.aliased++; c.aliased > maxAliased {
			c.fail(n, "the aliases of the document expand to more than %d values", maxAliased)
			c.stopped = true
			return nil, false
		}
	}
	switch n.Kind {
	case yaml.ScalarNode:
		value, err := scalar(n)
		if err != nil {
			c.fail(n, "%w", err)
			return nil, false
		}
		return value, true
	case yaml.SequenceNode:
		return c.sequence(n, depth)
	case yaml.MappingNode:
		m := newMapping(len(n.Content) / 2)
		ok := c.fill(m, n, depth)
		return m.values, ok
	case yaml.AliasNode:
		return c.alias(n, func(target *yaml.Node) (any, bool) { return c.value(target, depth) })
	default:
		c.fail(n, "unknown content")
		return nil, false
	}
}

func (c *converter) sequence(n *yaml.Node, depth int) (any, bool) {
	list, ok := make([]any, 0, len(n.Content)), true
	for _, item := range n.Content {
		value, fine := c.value(item, depth+1)
		list, ok = append(list, value), ok && fine
	}
	return list, ok
}

// alias calls f with what the alias stands for.
func (c *converter) alias(n *yaml.Node, f func(*yaml.Node) (any, bool)) (any, bool) {
	for _, open := range c.open {
		if open == n.Alias {
			c.fail(n, "alias *%s stands inside of what it refers to", n.Value)
			return nil, false
		}
	}
	c.open = append(c.open, n.Alias)
	defer func() { c.open = c.open[:len(c.open)-1] }()
	return f(n.Alias)
}
