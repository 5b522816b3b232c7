// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"math"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// ambiguous finds lines that end like a number with a large exponent.
var ambiguous = regexp.MustCompile(`(?m)[0-9.][eE]\+?[0-9]{3,}:?\s*$|[0-9.][eE]\+?[0-9]{3,}: `)

// Quoted returns YAML in which texts are quoted that Parse takes for numbers out of
// range. The common encoder writes such a text, for example the short hash 123e456, as
// it is, because the common parser takes it for a text.
func Quoted(data []byte) []byte {
	if !ambiguous.Match(data) {
		return data
	}
	var root yaml.Node
	if yaml.Unmarshal(data, &root) != nil || !quote(&root) {
		return data
	}
	var quoted bytes.Buffer
	encoder := yaml.NewEncoder(&quoted)
	encoder.SetIndent(2)
	if encoder.Encode(&root) != nil || encoder.Close() != nil {
		return data
	}
	return quoted.Bytes()
}

// quote reports whether there is something to quote.
func quote(n *yaml.Node) bool {
	found := false
	if n.Kind == yaml.ScalarNode && n.Style == 0 {
		number, isFloat := plain(n.Value).(float64)
		if found = isFloat && math.IsInf(number, 0) && words[n.Value] == nil; found {
			n.Style = yaml.DoubleQuotedStyle
		}
	}
	for _, child := range n.Content {
		found = quote(child) || found
	}
	return found
}
