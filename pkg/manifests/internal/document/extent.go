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

// Extent is how much a stream holds once its aliases are expanded.
type Extent struct {
	// Values counts the values, Depth is the deepest nesting, and Bytes is about the
	// size as JSON. What is too much to be counted is math.MaxInt.
	Values, Depth, Bytes int
}

// overhead is what a value takes beside its text.
const overhead = 2

// ExtentOf returns the extent of a YAML stream without expanding it. The text after a
// syntax error does not count. An alias inside of what it refers to is an error.
func ExtentOf(data []byte) (total Extent, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the YAML parser failed")
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var root yaml.Node
		if decoder.Decode(&root) != nil {
			return total, nil
		}
		extent, err := (&measure{known: map[*yaml.Node]Extent{}}).of(&root)
		if err != nil {
			return total, err
		}
		total.add(extent)
	}
}

// CheckAliases refuses a YAML stream whose aliases expand to more than Parse accepts. It
// is for texts that are read by another parser.
func CheckAliases(data []byte) error {
	if bytes.IndexByte(data, '&') < 0 || bytes.IndexByte(data, '*') < 0 {
		return nil // there is neither an anchor nor an alias
	}
	extent, err := ExtentOf(data)
	switch {
	case err != nil:
		return err
	case extent.Depth > maxDepth:
		return limitError(fmt.Sprintf("the document is nested deeper than %d levels", maxDepth))
	case extent.Values > len(data)+maxAliased:
		return limitError(fmt.Sprintf("the aliases of the document expand to more than %d values", maxAliased))
	case extent.Bytes > (1+overhead)*len(data)+maxAliasedBytes:
		return limitError(fmt.Sprintf("the aliases of the document expand to more than %d bytes", maxAliasedBytes))
	}
	return nil
}

// add puts what follows into the extent.
func (e *Extent) add(next Extent) {
	e.Values, e.Bytes, e.Depth = sum(e.Values, next.Values), sum(e.Bytes, next.Bytes), max(e.Depth, next.Depth)
}

func sum(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// measure looks at each node once.
type measure struct{ known map[*yaml.Node]Extent }

// of returns the extent of a node, each alias counted as what it refers to. The parser
// limits the depth of the nodes, and thereby that of the recursion.
func (m *measure) of(n *yaml.Node) (Extent, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if known, ok := m.known[n]; ok {
		if known.Values == 0 {
			return Extent{}, errors.New("an alias stands inside of what it refers to")
		}
		return known, nil
	}
	m.known[n] = Extent{}
	extent := Extent{Values: 1, Bytes: len(n.Value) + overhead}
	for _, child := range n.Content {
		below, err := m.of(child)
		if err != nil {
			return Extent{}, err
		}
		extent.add(below)
	}
	if n.Kind != yaml.DocumentNode {
		extent.Depth++
	}
	m.known[n] = extent
	return extent, nil
}
