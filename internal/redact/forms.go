// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// maxBytesPrinted is the length up to which a value is also known as the numbers
// of its bytes, which is how Go prints them.
const maxBytesPrinted = 128

// formsOf returns how a value may be written in a message, itself first.
func formsOf(value string) []string {
	// Messages are made one line.
	forms := []string{value, strings.TrimSpace(value), strings.Join(strings.Fields(value), " ")}
	// A quoted value may be quoted again, as in a logged answer of the server.
	for _, once := range escapesOf(value) {
		forms = append(append(forms, once), escapesOf(once)...)
	}
	if escaped := url.QueryEscape(value); escaped != value {
		forms = append(forms, escaped)
	}
	if escaped := url.PathEscape(value); escaped != value {
		forms = append(forms, escaped)
	}
	if len(value) <= maxBytesPrinted {
		printed := fmt.Sprint([]byte(value))
		forms = append(forms, printed[1:len(printed)-1])
	}
	encoded := []string{base64.RawStdEncoding.EncodeToString([]byte(value)), base64Core(value, 0), base64Core(value, 1), base64Core(value, 2)}
	for _, form := range encoded {
		forms = append(forms, form)
		if strings.ContainsAny(form, "+/") {
			forms = append(forms, strings.NewReplacer("+", "-", "/", "_").Replace(form))
		}
	}
	return forms
}

// escapesOf returns the value as it stands between the quotes of Go and of JSON, where
// that is another text.
func escapesOf(value string) []string {
	var escaped []string
	if quoted := strconv.Quote(value); len(quoted) != len(value)+2 {
		escaped = append(escaped, quoted[1:len(quoted)-1])
	}
	var b strings.Builder
	for _, html := range []bool{true, false} {
		b.Reset()
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(html)
		if encoder.Encode(value) == nil && b.Len() != len(value)+3 {
			escaped = append(escaped, b.String()[1:b.Len()-2])
		}
	}
	return escaped
}

// base64Core is the part of the base64 form that depends on the value only, if
// the value stands behind offset (modulo 3) other bytes.
func base64Core(value string, offset int) string {
	encoded := base64.RawStdEncoding.EncodeToString([]byte("\x00\x00\x00"[:offset] + value))
	begin := (offset*8 + 5) / 6
	end := (offset + len(value)) * 8 / 6
	return encoded[begin:end]
}

// maxParts bounds the parts of one value.
const maxParts = 2000

// partsOf returns the parts of a value that a message may tell alone: the lines
// of a text, the values in "key: value" and "key=value", the leaves of a JSON
// document, the credentials of a URL.
func partsOf(value string) []string {
	if isKubeconfig(value) {
		return kubeconfigParts(value)
	}
	var parts []string
	if trimmed := strings.TrimSpace(value); strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		var document any
		if json.Unmarshal([]byte(trimmed), &document) == nil {
			parts = leavesOf(document, parts)
		}
	}
	if strings.Contains(value, "://") {
		if address, err := url.Parse(strings.TrimSpace(value)); err == nil && address.User != nil {
			password, _ := address.User.Password()
			parts = append(parts, password)
		}
	}
	for line := range strings.Lines(value) {
		if len(parts) >= maxParts {
			break
		}
		line = strings.TrimSpace(line)
		parts = append(parts, line)
		if strings.Contains(value, "\n") {
			parts = append(parts, assigned(line))
		}
	}
	return parts
}

// assigned is the right side of a line that assigns something.
func assigned(line string) string {
	for _, sign := range []string{": ", "="} {
		if _, right, ok := strings.Cut(line, sign); ok {
			return strings.Trim(strings.TrimSpace(right), `"'`)
		}
	}
	return ""
}

func leavesOf(document any, leaves []string) []string {
	if len(leaves) >= maxParts {
		return leaves
	}
	switch node := document.(type) {
	case string:
		leaves = append(leaves, node)
	case []any:
		for _, child := range node {
			leaves = leavesOf(child, leaves)
		}
	case map[string]any:
		for _, child := range node {
			leaves = leavesOf(child, leaves)
		}
	}
	return leaves
}
