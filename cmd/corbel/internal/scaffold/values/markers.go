// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const marker = "+kubebuilder:validation:"

// comment returns the doc comment and the markers of a field.
func comment(field *Field) string {
	var lines []string
	for _, line := range wrap(field.Doc) {
		lines = append(lines, "// "+line)
	}
	for _, m := range markers(field) {
		lines = append(lines, "// "+m)
	}
	var b strings.Builder
	for _, line := range lines {
		b.WriteString("\t" + line + "\n")
	}
	return b.String()
}

// markers returns what controller-gen has to know about a field.
func markers(field *Field) []string {
	result := []string{"+optional"}
	if field.Required {
		result = []string{"+required"}
	}
	switch field.Type {
	case Number:
		result = append(result, marker+"Schemaless", marker+"Type=number")
	case Any:
		result = append(result, marker+"Schemaless", "+kubebuilder:pruning:PreserveUnknownFields")
	case IntOrString:
		result = append(result, marker+"XIntOrString")
	}
	result = append(result, restrictions(field, marker)...)
	if elem := field.Elem; field.Type == List && elem != nil && (elem.Type == String || elem.Type == Integer) {
		result = append(result, restrictions(elem, marker+"items:")...)
	}
	if value, ok := defaultOf(field); ok {
		result = append(result, "+kubebuilder:default="+value)
	}
	return result
}

// restrictions returns the markers for what restricts a scalar.
func restrictions(field *Field, prefix string) []string {
	var result []string
	if len(field.Enum) > 0 {
		var constants []string
		for _, constant := range field.Enum {
			constants = append(constants, literal(constant))
		}
		result = append(result, prefix+"Enum={"+strings.Join(constants, ",")+"}")
	}
	if field.Minimum != nil {
		result = append(result, prefix+"Minimum="+literal(*field.Minimum))
	}
	if field.Maximum != nil {
		result = append(result, prefix+"Maximum="+literal(*field.Maximum))
	}
	if field.MinLength != nil {
		result = append(result, prefix+"MinLength="+literal(*field.MinLength))
	}
	if field.MaxLength != nil {
		result = append(result, prefix+"MaxLength="+literal(*field.MaxLength))
	}
	if field.Pattern != "" {
		result = append(result, prefix+"Pattern="+literal(field.Pattern))
	}
	return result
}

// literal writes a scalar as a marker takes it.
func literal(value any) string {
	switch v := value.(type) {
	case string:
		return strconv.Quote(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}

// imageWords are the last words of keys that say which image, or which version, runs.
var imageWords = []string{"image", "registry", "repository", "tag", "digest", "version"}

// defaultOf returns the default of a scalar for its marker, if it is to be stored.
func defaultOf(field *Field) (string, bool) {
	if slices.Contains(imageWords, lastWord(field.Key)) || field.Required || !isAllowed(field, field.Default) {
		return "", false
	}
	switch v := field.Default.(type) {
	case bool:
		return literal(v), v && field.Type == Bool
	case int64:
		return literal(v), v != 0 && (field.Type == Integer || field.Type == Number || field.Type == IntOrString)
	case float64:
		return literal(v), v != 0 && isExact(v) && field.Type == Number
	case string:
		return literal(v), v != "" && (field.Type == String || field.Type == IntOrString)
	default:
		return "", false
	}
}

// isAllowed reports whether the restrictions of a field allow a value: the API server refuses a
// schema whose default they do not allow.
func isAllowed(field *Field, value any) bool {
	if len(field.Enum) > 0 && !slices.Contains(field.Enum, value) {
		return false
	}
	if n, ok := float(value); ok {
		if field.Minimum != nil && n < *field.Minimum || field.Maximum != nil && n > *field.Maximum {
			return false
		}
	}
	if s, ok := value.(string); ok {
		length := int64(utf8.RuneCountInString(s))
		if field.MinLength != nil && length < *field.MinLength || field.MaxLength != nil && length > *field.MaxLength {
			return false
		}
		pattern, err := regexp.Compile(field.Pattern)
		return err == nil && pattern.MatchString(s)
	}
	return true
}

// wrap breaks a doc into lines of about 100 characters. No line looks like a marker.
func wrap(doc string) []string {
	const width = 100
	var lines []string
	var current string
	for _, word := range strings.Fields(line(doc)) {
		if current != "" && len(current)+1+len(word) > width {
			lines, current = append(lines, current), ""
		}
		if current == "" {
			current = unmark(word)
		} else {
			current += " " + word
		}
	}
	if current != "" {
		lines = append(lines, current)
	}
	return lines
}

// unmark writes a plus in words: a line that begins with one is a marker.
func unmark(word string) string {
	if rest := strings.TrimLeft(word, "+"); rest != word {
		return strings.TrimSpace("plus " + rest)
	}
	return word
}

// line returns a text as one line with characters that can be printed.
func line(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, text)
}
