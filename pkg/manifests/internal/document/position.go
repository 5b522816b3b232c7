// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package document

import "go.yaml.in/yaml/v3"

// LineOf returns the line of the stream in which the value at the path begins;
// the path consists of keys (string) and positions in lists (int). If the path
// leads nowhere, it is the line of the last value that exists on it. Values
// that came through aliases and merges have the line of what they stand for.
func (d Document) LineOf(path ...any) int {
	line, node := d.Line, d.node
	for _, step := range path {
		for range maxDepth {
			if node == nil || node.Kind != yaml.AliasNode {
				break
			}
			node = node.Alias
		}
		if node == nil {
			return line
		}
		var position int
		switch step := step.(type) {
		case string:
			position, node = child(node, step)
		case int:
			if node.Kind != yaml.SequenceNode || step >= len(node.Content) {
				return line
			}
			node = node.Content[step]
			position = node.Line
		}
		if node == nil {
			return line
		}
		line = d.offset + position
	}
	return line
}

// child returns the value of a key and the line of the key.
func child(n *yaml.Node, name string) (int, *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		return 0, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key, err := keyOf(n.Content[i]); err == nil && key == name {
			return n.Content[i].Line, n.Content[i+1]
		}
	}
	return 0, nil
}
