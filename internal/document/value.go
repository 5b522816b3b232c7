// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// ErrNumber is the error for a number that would become another one.
var ErrNumber = errors.New("the number is out of range")

// converter converts the nodes of a chunk to values, up to the first mistake. The target of an
// alias is converted anew for each alias, so that the values share nothing. extentOf was called
// before: it limits the recursion.
type converter struct {
	Options
	offset int
}

func (c converter) fail(n *yaml.Node, err error) *Error {
	return &Error{Line: c.offset + n.Line, Err: err}
}

func (c converter) value(n *yaml.Node) (any, *Error) {
	switch n = resolved(n); n.Kind {
	case yaml.MappingNode:
		return c.mapping(n)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			value, err := c.value(item)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	}
	value, err := c.scalar(n)
	if err != nil {
		return nil, c.fail(n, err)
	}
	if f, ok := value.(float64); ok {
		value = asInJSON(f)
	}
	return value, nil
}

// mapping returns the keys of the node, and the keys that it merges in, which never replace its
// own.
func (c converter) mapping(n *yaml.Node) (map[string]any, *Error) {
	values := make(map[string]any, len(n.Content)/2)
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].ShortTag() == "!!merge" {
			merged = append(merged, n.Content[i+1])
			continue
		}
		key, err := c.keyOf(n.Content[i])
		if err != nil {
			return nil, c.fail(n.Content[i], err)
		}
		if _, exists := values[key]; exists && !c.LastKeyWins {
			first, _ := c.child(n, key)
			return nil, c.fail(n.Content[i], fmt.Errorf("key %q is set twice, first in line %d", key, c.offset+first))
		}
		value, mistake := c.value(n.Content[i+1])
		if mistake != nil {
			return nil, mistake
		}
		values[key] = value
	}
	for _, from := range merged {
		if err := c.merge(values, from); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// merge adds the keys of a map, or of a list of maps, that are not there yet.
func (c converter) merge(values map[string]any, from *yaml.Node) *Error {
	maps := []*yaml.Node{from}
	if list := resolved(from); list.Kind == yaml.SequenceNode {
		maps = list.Content
	}
	for _, n := range maps {
		if resolved(n).Kind != yaml.MappingNode {
			return c.fail(n, errors.New("the value of << must be a map or a list of maps"))
		}
		merged, err := c.mapping(resolved(n))
		if err != nil {
			return err
		}
		for key, value := range merged {
			if _, exists := values[key]; !exists {
				values[key] = value
			}
		}
	}
	return nil
}

// resolved returns the target of an alias, and other nodes as they are.
func resolved(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// keyOf returns a key in the form that it has in JSON.
func (o Options) keyOf(n *yaml.Node) (string, error) {
	if n = resolved(n); n.Kind != yaml.ScalarNode {
		return "", errors.New("the key of a map must be a string, not a map or a list")
	}
	if o.Core && n.Style&yaml.TaggedStyle == 0 {
		return n.Value, nil
	}
	value, err := o.scalar(n)
	if err != nil {
		return "", err
	}
	switch value := value.(type) {
	case string:
		return value, nil
	case bool:
		return strconv.FormatBool(value), nil
	case int64:
		return strconv.FormatInt(value, 10), nil
	case float64:
		// Only 32 bits: the common parser converts such a key like this.
		return strconv.FormatFloat(value, 'g', -1, 32), nil
	}
	return "", fmt.Errorf("the key of a map must be a string, not %q", n.Value)
}

// scalar returns nil, a bool, an int64, a float64 or a string. It obeys tags; tags that mean
// nothing in Kubernetes make the value a string.
func (o Options) scalar(n *yaml.Node) (any, error) {
	if n.Style&yaml.TaggedStyle == 0 {
		if n.Style != 0 { // quotes, or a block
			return n.Value, nil
		}
		return o.plain(n)
	}
	value, err := o.plain(&yaml.Node{Kind: yaml.ScalarNode, Value: n.Value})
	fits := false
	switch n.ShortTag() {
	case "!!int":
		_, fits = value.(int64)
	case "!!float":
		_, isInt := value.(int64)
		_, isFloat := value.(float64)
		fits = isInt || isFloat
	case "!!bool":
		_, fits = value.(bool)
	case "!!null":
		fits = value == nil
	case "!!binary":
		data, err := base64.StdEncoding.DecodeString(n.Value)
		if err == nil && !utf8.Valid(data) {
			err = errors.New("it is not valid UTF-8")
		}
		if err != nil {
			return nil, fmt.Errorf("the value of !!binary is not a text in base64: %w", err)
		}
		return string(data), nil
	default:
		return n.Value, nil
	}
	if err == nil && !fits {
		err = fmt.Errorf("the value does not fit its tag %s", n.ShortTag())
	}
	return value, err
}

// plain returns the value of a scalar without quotes and tag. The words for booleans are the words
// of YAML 1.1, which Kubernetes speaks; the parser knows YAML 1.2.
func (o Options) plain(n *yaml.Node) (any, error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!int", "!!float":
		return number(n.Value)
	case "!!bool":
		return strings.EqualFold(n.Value, "true"), nil
	case "!!timestamp":
		var at time.Time
		if o.Core && n.Decode(&at) == nil {
			return at.Format(time.RFC3339Nano), nil
		}
	}
	switch {
	case o.Core:
		return n.Value, nil
	case beyondAll(n.Value):
		return nil, tooLarge(n.Value)
	}
	switch n.Value {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
		return true, nil
	case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return false, nil
	}
	return n.Value, nil
}

// number returns an int64 or a float64, and an error if the number would become another
// one, or is none in JSON.
func number(text string) (any, error) {
	digits := strings.ReplaceAll(text, "_", "")
	if i, err := strconv.ParseInt(digits, 0, 64); err == nil {
		return i, nil
	}
	if !strings.ContainsAny(text, "0123456789") {
		return nil, fmt.Errorf("%s is no number that JSON can hold", text)
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil || math.Abs(f) >= 1<<63 && !strings.ContainsAny(text, ".eE") {
		return nil, tooLarge(text)
	}
	return f, nil
}

// beyondAll reports whether a text is a number that no float can hold, which the parser
// takes for a text.
func beyondAll(text string) bool {
	if text == "" || !strings.ContainsRune("+-.0123456789", rune(text[0])) || strings.ContainsAny(text, "xX") {
		return false
	}
	_, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	return errors.Is(err, strconv.ErrRange)
}

// tooLarge is the error about a number that no object can hold as it is.
func tooLarge(text string) error {
	const most = 40
	if len(text) > most {
		text = text[:most] + "..."
	}
	return fmt.Errorf("%w: %s is beyond what a number in an object can be; put it into quotes if it is a text", ErrNumber, text)
}

// asInJSON gives whole numbers as int64, as they come out of JSON, where 1.0 and 1 are
// the same.
func asInJSON(f float64) any {
	if math.Abs(f) < 1e21 {
		if i, err := strconv.ParseInt(strconv.FormatFloat(f, 'f', -1, 64), 10, 64); err == nil {
			return i
		}
	}
	return f
}

// ambiguous finds lines that end like a number with a large exponent.
var ambiguous = regexp.MustCompile(`(?m)[0-9.][eE]\+?[0-9]{3,}:?\s*$|[0-9.][eE]\+?[0-9]{3,}: `)

// Quoted returns YAML in which texts are quoted that Parse treats as numbers out of
// range. The common encoder writes such a text, for example the short hash 123e456, as
// it is, because the common parser treats it as a text.
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
	if n.Kind == yaml.ScalarNode && n.Style == 0 && beyondAll(n.Value) {
		n.Style, found = yaml.DoubleQuotedStyle, true
	}
	for _, child := range n.Content {
		found = quote(child) || found
	}
	return found
}
