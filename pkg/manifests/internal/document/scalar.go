// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// words are the plain scalars with a meaning, by YAML 1.1, which is what
// Kubernetes speaks.
var words = map[string]any{
	"": nil, "~": nil, "null": nil, "Null": nil, "NULL": nil,
	"y": true, "Y": true, "yes": true, "Yes": true, "YES": true,
	"true": true, "True": true, "TRUE": true, "on": true, "On": true, "ON": true,
	"n": false, "N": false, "no": false, "No": false, "NO": false,
	"false": false, "False": false, "FALSE": false, "off": false, "Off": false, "OFF": false,
	".nan": math.NaN(), ".NaN": math.NaN(), ".NAN": math.NaN(),
	".inf": math.Inf(1), ".Inf": math.Inf(1), ".INF": math.Inf(1),
	"+.inf": math.Inf(1), "+.Inf": math.Inf(1), "+.INF": math.Inf(1),
	"-.inf": math.Inf(-1), "-.Inf": math.Inf(-1), "-.INF": math.Inf(-1),
}

var floatPattern = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// ErrNumber is what a number exceeds that would become another one.
var ErrNumber = errors.New("the number is out of range")

// isTooLarge reports whether a number is out of range, or is written with all its digits
// and was rounded.
func isTooLarge(value float64, text string) bool {
	if math.IsInf(value, 0) {
		return strings.ContainsAny(text, "0123456789")
	}
	return math.Abs(value) >= 1<<63 && !strings.ContainsAny(text, ".eE")
}

// scalar returns the value of a scalar as it comes out of JSON.
func scalar(n *yaml.Node) (any, error) {
	value, err := resolve(n)
	if err != nil {
		return nil, err
	}
	switch value := value.(type) {
	case float64:
		if isTooLarge(value, n.Value) {
			return nil, tooLarge(n.Value)
		}
		return jsonNumber(value, n.Value)
	case uint64:
		return nil, tooLarge(n.Value)
	case string:
		if !utf8.ValidString(value) {
			return nil, fmt.Errorf("the value is not valid UTF-8")
		}
	}
	return value, nil
}

// tooLarge is the error about a number that no object can hold as it is.
func tooLarge(text string) error {
	const most = 40
	if len(text) > most {
		text = text[:most] + "..."
	}
	return fmt.Errorf("%w: %s is beyond what a number in an object can be; put it into quotes if it is a text", ErrNumber, text)
}

// jsonNumber gives whole numbers as int64, as they come out of JSON, where 1.0
// and 1 are the same.
func jsonNumber(f float64, text string) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("%s is no number that JSON can hold", text)
	}
	if math.Abs(f) < 1e21 {
		if i, err := strconv.ParseInt(strconv.FormatFloat(f, 'f', -1, 64), 10, 64); err == nil {
			return i, nil
		}
	}
	return f, nil
}

// resolve returns nil, a bool, an int64, a uint64 beyond that, a float64 or a
// string.
func resolve(n *yaml.Node) (any, error) {
	if n.Style&yaml.TaggedStyle != 0 {
		return tagged(n)
	}
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return n.Value, nil
	}
	return plain(n.Value), nil
}

// plain gives a scalar without quotes and tag its type.
func plain(text string) any {
	if value, ok := words[text]; ok {
		return value
	}
	switch c := text[0]; {
	case c == '.':
		if f, err := strconv.ParseFloat(text, 64); err == nil || errors.Is(err, strconv.ErrRange) {
			return f
		}
	case c >= '0' && c <= '9', c == '-', c == '+':
		digits := strings.ReplaceAll(text, "_", "")
		if i, err := strconv.ParseInt(digits, 0, 64); err == nil {
			return i
		}
		if u, err := strconv.ParseUint(digits, 0, 64); err == nil {
			return u
		}
		if floatPattern.MatchString(digits) {
			// Beyond the range it is infinite, which JSON cannot hold.
			f, _ := strconv.ParseFloat(digits, 64)
			return f
		}
	}
	return text
}

// tagged obeys the tag of a scalar. Tags that we do not know mean nothing in
// Kubernetes; the value is a string then.
func tagged(n *yaml.Node) (any, error) {
	value := plain(n.Value)
	fits := false
	switch n.ShortTag() {
	case "!!int":
		_, isInt := value.(int64)
		_, isUint := value.(uint64)
		fits = isInt || isUint
	case "!!float":
		if i, isInt := value.(int64); isInt {
			value = float64(i)
		}
		_, fits = value.(float64)
	case "!!bool":
		_, fits = value.(bool)
	case "!!null":
		fits = value == nil
	case "!!binary":
		data, err := base64.StdEncoding.DecodeString(n.Value)
		if err != nil {
			return nil, fmt.Errorf("the value of !!binary is not base64: %w", err)
		}
		return string(data), nil
	default:
		return n.Value, nil
	}
	if !fits {
		return nil, fmt.Errorf("the value does not fit its tag %s", n.ShortTag())
	}
	return value, nil
}
