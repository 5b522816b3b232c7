// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

// document is the content of values.yaml.
type document struct {
	// value is what Helm reads.
	value map[string]any
	// node has the order of the keys, and the lines. It is nil for an empty document.
	node *yaml.Node
}

// parseValues parses values.yaml as Helm does.
func parseValues(text []byte) (document, error) {
	data, err := sigsyaml.YAMLToJSON(text)
	if err != nil {
		return document{}, fmt.Errorf("values.yaml is not valid YAML: %w", err)
	}
	value, err := decodeJSON(data)
	if err != nil {
		return document{}, fmt.Errorf("values.yaml cannot be read as JSON: %w", err)
	}
	if value == nil {
		return document{}, nil
	}
	object, ok := value.(map[string]any)
	if !ok {
		return document{}, fmt.Errorf("values.yaml is %s; it has to be an object with keys", describe(value))
	}
	var node yaml.Node
	// The lines are an extra: what only this parser refuses has no comments and is sorted by key.
	if err := yaml.Unmarshal(text, &node); err != nil || len(node.Content) == 0 {
		return document{value: object}, nil
	}
	return document{value: object, node: node.Content[0]}, nil
}

// decodeJSON decodes JSON with int64 for the integers that fit, and float64 for other numbers.
func decodeJSON(data []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if decoder.More() {
		return nil, fmt.Errorf("there is more than one JSON value")
	}
	return withNumbers(value)
}

func withNumbers(value any) (any, error) {
	var err error
	switch v := value.(type) {
	case json.Number:
		if whole, err := v.Int64(); err == nil {
			return whole, nil
		}
		return v.Float64()
	case map[string]any:
		for key := range v {
			if v[key], err = withNumbers(v[key]); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range v {
			if v[i], err = withNumbers(v[i]); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

// writtenKey is a key of an object, and where it and its values are written.
type writtenKey struct {
	name   string
	node   *yaml.Node
	values []*yaml.Node
}

// orderedKeys returns the keys of an object in the order in which they are written, and then those
// that come from elsewhere (merged from an anchor, or spelled in another way) by name.
func orderedKeys(nodes []*yaml.Node, object map[string]any) []writtenKey {
	var keys []writtenKey
	index := map[string]int{}
	for _, node := range nodes {
		node = resolved(node)
		if node.Kind != yaml.MappingNode {
			continue
		}
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := resolved(node.Content[i])
			if _, ok := object[key.Value]; !ok || key.Kind != yaml.ScalarNode {
				continue
			}
			at, ok := index[key.Value]
			if !ok {
				at, index[key.Value] = len(keys), len(keys)
				keys = append(keys, writtenKey{name: key.Value, node: node.Content[i]})
			}
			keys[at].values = append(keys[at].values, node.Content[i+1])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if _, ok := index[name]; !ok {
			keys = append(keys, writtenKey{name: name})
		}
	}
	return keys
}

// memberNodes returns where the elements of lists and maps are written.
func memberNodes(nodes []*yaml.Node) []*yaml.Node {
	var members []*yaml.Node
	for _, node := range nodes {
		switch node = resolved(node); node.Kind {
		case yaml.SequenceNode:
			members = append(members, node.Content...)
		case yaml.MappingNode:
			for i := 1; i < len(node.Content); i += 2 {
				members = append(members, node.Content[i])
			}
		}
	}
	return members
}

// resolved follows an alias.
func resolved(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode && node.Alias != nil {
		node = node.Alias
	}
	return node
}

// members returns the elements of a list or a map, those of a map by key.
func members(value any) []any {
	switch v := value.(type) {
	case []any:
		return v
	case map[string]any:
		var values []any
		for _, key := range slices.Sorted(maps.Keys(v)) {
			values = append(values, v[key])
		}
		return values
	default:
		return nil
	}
}

// mixed and mixedIntString stand for elements of different types.
type (
	mixed          struct{}
	mixedIntString struct{}
)

// common returns a value that has the type of all of the values, as far as they have one in
// common: of objects, one that has the keys of all; of lists, one that has the elements of all.
func common(values []any) any {
	values = slices.DeleteFunc(slices.Clone(values), func(value any) bool { return value == nil })
	if len(values) == 0 {
		return nil
	}
	keys, elements, objects := map[string][]any{}, []any{}, 0
	lists := 0
	for _, value := range values {
		switch v := value.(type) {
		case map[string]any:
			objects++
			for key, inner := range v {
				keys[key] = append(keys[key], inner)
			}
		case []any:
			lists++
			elements = append(elements, v...)
		}
	}
	switch len(values) {
	case objects:
		object := map[string]any{}
		for key, inner := range keys {
			object[key] = common(inner)
		}
		return object
	case lists:
		return elements
	}
	result := values[0]
	for _, value := range values[1:] {
		result = unite(result, value)
	}
	return result
}

// unite returns a value that has the type of two scalars.
func unite(a, b any) any {
	switch b := b.(type) {
	case string:
		switch a := a.(type) {
		case string:
			// An empty string tells less.
			return firstOf(a, b)
		case int64, mixedIntString:
			return mixedIntString{}
		}
	case int64:
		switch a.(type) {
		case int64, float64:
			return a
		case string, mixedIntString:
			return mixedIntString{}
		}
	case float64:
		switch a.(type) {
		case int64, float64:
			return b
		}
	case bool:
		if _, ok := a.(bool); ok {
			return a
		}
	case mixedIntString:
		switch a.(type) {
		case string, int64, mixedIntString:
			return b
		}
	}
	return mixed{}
}

// kindOf returns the type of a value, or "" if it tells none.
func kindOf(p place) Type {
	switch v := p.value.(type) {
	case bool:
		return Bool
	case string:
		return String
	case float64:
		return Number
	case int64:
		isFloat := func(node *yaml.Node) bool { return resolved(node).ShortTag() == "!!float" }
		if slices.ContainsFunc(p.nodes, isFloat) {
			return Number
		}
		return Integer
	case mixedIntString:
		return IntOrString
	case mixed:
		return Any
	case map[string]any:
		if len(v) > 0 {
			return Object
		}
	case []any:
		if len(v) > 0 && common(v) != nil {
			return List
		}
	}
	return ""
}

// agrees reports whether a value has a type.
func agrees(kind Type, value any) bool {
	switch v := value.(type) {
	case bool:
		return kind == Bool
	case string:
		return kind == String || kind == IntOrString
	case int64:
		return kind == Integer || kind == Number || kind == IntOrString && v == int64(int32(v))
	case float64:
		return kind == Number
	case []any:
		return kind == List
	case map[string]any:
		return kind == Object || kind == Map
	default:
		return kind == Any
	}
}

// isEmpty reports whether a value is null, "", an empty list or an empty object.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	default:
		return false
	}
}

// describe names the type of a value.
func describe(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return Bool.words()
	case string:
		return String.words()
	case int64:
		return Integer.words()
	case float64:
		return Number.words()
	case []any:
		return List.words()
	case map[string]any:
		return Object.words()
	default:
		return "a mixture of types"
	}
}

// setDefault remembers the value if it is one of the type.
func setDefault(field *Field, value any) {
	switch field.Type {
	case Object:
	case Core:
		if fits(shape{kind: Core, core: field.Core}, value) {
			field.Default = value
		}
	case Any:
		field.Default = value
	default:
		if agrees(field.Type, value) {
			field.Default = value
		}
	}
}

// sentences returns the first sentences of a text, in one line: as many as fit into 240
// characters, but at least one.
func sentences(text string) string {
	const limit = 240
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= limit {
		return text
	}
	if end := strings.LastIndex(text[:limit], ". "); end > 0 {
		return text[:end+1]
	}
	if end := strings.Index(text, ". "); end > 0 {
		return text[:end+1]
	}
	return text
}
