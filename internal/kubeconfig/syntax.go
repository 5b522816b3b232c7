// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// MaxBytes is the size that a kubeconfig may have.
const MaxBytes = 1 << 20

var byteOrderMark = []byte("\xef\xbb\xbf")

// syntaxTree returns the root of the one YAML document.
func syntaxTree(raw []byte) (*yaml.Node, *Problem) {
	if len(raw) > MaxBytes {
		return nil, &Problem{Reason: v1alpha1.ReasonKubeconfigTooLarge, Text: fmt.Sprintf("has %d bytes, at most %d are allowed", len(raw), MaxBytes)}
	}
	raw = bytes.TrimPrefix(raw, byteOrderMark)
	if !utf8.Valid(raw) || bytes.IndexFunc(raw, isForbiddenRune) >= 0 {
		return nil, invalid("is no text in UTF-8")
	}
	// White space at the end may hold tabs, which YAML does not take there.
	decoder := yaml.NewDecoder(bytes.NewReader(bytes.TrimRight(raw, " \t\r\n")))
	var document, next yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, &Problem{Reason: v1alpha1.ReasonKubeconfigEmpty, Text: "is empty"}
	case err != nil:
		return nil, invalid(syntaxText(err))
	}
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, invalid("holds more than one document")
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 {
		return nil, invalid("holds no document")
	}
	return document.Content[0], nil
}

func invalid(text string) *Problem {
	return &Problem{Reason: v1alpha1.ReasonKubeconfigInvalid, Text: text}
}

// isForbiddenRune finds what UTF-16 without a mark looks like, and what terminals
// and logs interpret.
func isForbiddenRune(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' && r != '\u0085' || r == '\ufeff'
}

var linePattern = regexp.MustCompile(`line (\d+):`)

// syntaxText keeps only the line: the parser's own words may quote the text.
func syntaxText(err error) string {
	if match := linePattern.FindStringSubmatch(err.Error()); match != nil {
		return "is neither YAML nor JSON: there is a mistake near line " + match[1]
	}
	return "is neither YAML nor JSON"
}
