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
	// maxAliased and maxAliasedBytes limit how many values, and how many bytes of
	// keys and texts, the aliases of a stream may expand to. A text that stands for
	// ten thousand others takes no memory until the value is encoded.
	maxAliased      = 100_000
	maxAliasedBytes = 16 << 20
	// maxErrors limits how many mistakes of one document are reported.
	maxErrors = 20
)

// ErrLimit is what a text exceeds that is nested too deep or expands to too much.
var ErrLimit = errors.New("a limit of the parser is exceeded")

// expansion counts what the aliases of a stream expand to.
type expansion struct{ values, bytes int }

// converter turns a node into a value.
type converter struct {
	offset  int
	aliased *expansion
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
		return nil, c.exceed(n, "the document is nested deeper than %d levels", maxDepth)
	}
	if len(c.open) > 0 && !c.expand(n) {
		return nil, false
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

// exceed reports that a limit is exceeded, and stops the conversion.
func (c *converter) exceed(n *yaml.Node, format string, args ...any) bool {
	c.errs = append(c.errs, &Error{Line: c.offset + n.Line, Err: limitError(fmt.Sprintf(format, args...))})
	c.stopped = true
	return false
}

// expand counts a node that an alias stands for.
func (c *converter) expand(n *yaml.Node) bool {
	c.aliased.values++
	c.aliased.bytes += len(n.Value) + overhead
	switch {
	case c.aliased.values > maxAliased:
		return c.exceed(n, "the aliases of the document expand to more than %d values", maxAliased)
	case c.aliased.bytes > maxAliasedBytes:
		return c.exceed(n, "the aliases of the document expand to more than %d bytes", maxAliasedBytes)
	}
	return true
}

// limitError is a mistake that is ErrLimit.
type limitError string

func (e limitError) Error() string { return string(e) }

func (e limitError) Is(target error) bool { return target == ErrLimit }

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
