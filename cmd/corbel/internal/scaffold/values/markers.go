// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const marker = "+kubebuilder:validation:"

// comment returns the doc comment and the markers of a field.
func comment(field *Field) string {
	var lines []string
	for _, line := range wrap(described(field)) {
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

// described returns the doc of a field with its default in the chart. The default comes last, unless the description in
// a CustomResourceDefinition, which is cut, would lack it.
func described(field *Field) string {
	const cut = 200
	set := defaultSentence(field)
	switch doc := strings.TrimSpace(field.Doc); {
	case doc == "" || set == "":
		return doc + set
	case len(doc)+len(set)+2 > cut:
		return set + " " + doc
	case strings.HasSuffix(doc, ".") || strings.HasSuffix(doc, "!") || strings.HasSuffix(doc, "?"):
		return doc + " " + set
	default:
		return doc + ". " + set
	}
}

// defaultSentence says what the chart sets by default; empty if that is nothing. A default that is long, or a secret, is
// in the chart only.
func defaultSentence(field *Field) string {
	const limit = 80
	if isEmpty(field.Default) {
		return ""
	}
	if value := asJSON(field.Default); len(value) <= limit && field.Type != SecretKey {
		return "The chart sets " + value + " by default."
	}
	return "The chart has a default."
}

// asJSON writes a JSON value.
func asJSON(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // it has been decoded from JSON
	return strings.TrimSpace(text.String())
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
