// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"go.yaml.in/yaml/v3"
)

const (
	// maxDepth limits how deep a document may be nested. The API server
	// accepts more, but nothing that is meant seriously comes near.
	//
	// Unit: levels
	// Limit: the nesting of a YAML or JSON document.
	maxDepth = 500
	// maxAliased and maxAliasedBytes limit how many values, and how many bytes of keys and texts,
	// the aliases of a stream may expand to. A text that stands for ten thousand texts takes no
	// memory until the value is encoded.
	//
	// Unit: values
	// Limit: the values that the aliases of a YAML stream expand to.
	maxAliased = 100_000
	// Limit: the keys and texts that the aliases of a YAML stream expand to.
	maxAliasedBytes = 16 << 20
	// overhead is the size of a value beside its text.
	overhead = 2
)

// ErrLimit is the error for a text that is nested too deep or expands to too much.
var ErrLimit = errors.New("a limit of the parser is exceeded")

// limitError is a mistake that is ErrLimit.
type limitError string

func (e limitError) Error() string { return string(e) }

func (e limitError) Is(target error) bool { return target == ErrLimit }

// Extent is how much a stream holds once its aliases are expanded.
type Extent struct {
	// Values counts the values, Depth is the deepest nesting, and Bytes is about the size as JSON.
	// A number that is too large to be counted is math.MaxInt.
	Values, Depth, Bytes int
}

// ExtentOf returns the extent of a YAML stream without expanding it. The text after a
// syntax error does not count. An alias inside of its own target is an error.
func ExtentOf(data []byte) (total Extent, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var root yaml.Node
		if decoder.Decode(&root) != nil {
			return total, nil
		}
		for _, content := range root.Content {
			extent, err := ExtentOfNode(content)
			if err != nil {
				return total, err
			}
			total.add(extent)
		}
	}
}

// CheckAliases refuses a YAML stream with aliases that expand to more than Parse accepts. It
// is for texts that are read by another parser.
func CheckAliases(data []byte) error {
	if bytes.IndexByte(data, '&') < 0 || bytes.IndexByte(data, '*') < 0 {
		return nil // there is neither an anchor nor an alias
	}
	extent, err := ExtentOf(data)
	if err == nil {
		err = extent.check(len(data))
	}
	return err
}

// check refuses an extent that a text of this size has only by its aliases.
func (e Extent) check(size int) error {
	switch {
	case e.Depth > maxDepth:
		return limitError(fmt.Sprintf("the document is nested deeper than %d levels", maxDepth))
	case e.Values > size+maxAliased:
		return limitError(fmt.Sprintf("the aliases of the document expand to more than %d values", maxAliased))
	case e.Bytes > (1+overhead)*size+maxAliasedBytes:
		return limitError(fmt.Sprintf("the aliases of the document expand to more than %d bytes", maxAliasedBytes))
	}
	return nil
}

// add adds the next extent.
func (e *Extent) add(next Extent) {
	e.Values, e.Bytes, e.Depth = sum(e.Values, next.Values), sum(e.Bytes, next.Bytes), max(e.Depth, next.Depth)
}

func sum(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// ExtentOfNode returns the extent of a node. An alias inside of its own target is an
// error.
func ExtentOfNode(n *yaml.Node) (Extent, error) {
	extent, circle := extentOf(n)
	if circle != nil {
		return Extent{}, circle.Err
	}
	return extent, nil
}

// extentOf returns the extent of a node. The error has the line in the text of the node.
func extentOf(n *yaml.Node) (Extent, *Error) {
	return measure{}.of(n)
}

// measure keeps the extents of nodes with anchors, so that each node is looked at once. The extent
// of a node that is being looked at is empty.
type measure map[*yaml.Node]Extent

// of counts each alias as its target. The parser limits the depth of the nodes, and thereby the
// depth of the recursion.
func (m measure) of(n *yaml.Node) (Extent, *Error) {
	target := resolved(n)
	if known, ok := m[target]; ok {
		if known.Values == 0 {
			return Extent{}, &Error{Line: n.Line, Err: fmt.Errorf("alias *%s stands inside of what it refers to", n.Value)}
		}
		return known, nil
	}
	if target.Anchor != "" {
		m[target] = Extent{}
	}
	extent := Extent{Values: 1, Bytes: len(target.Value) + overhead}
	for _, child := range target.Content {
		below, err := m.of(child)
		if err != nil {
			return Extent{}, err
		}
		extent.add(below)
	}
	extent.Depth++
	if target.Anchor != "" {
		m[target] = extent
	}
	return extent, nil
}
