// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	yamlv2 "go.yaml.in/yaml/v2"
	"go.yaml.in/yaml/v3"
)

// parseNode returns the content of a chunk, or nil if it holds nothing.
func parseNode(c chunk) (*yaml.Node, *Error) {
	decoder := yaml.NewDecoder(bytes.NewReader(c.text))
	var root, next yaml.Node
	err := decoder.Decode(&root)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, c.syntaxError(err)
	}
	// Without this look a second document that the splitter does not see would
	// be dropped silently.
	if err := decoder.Decode(&next); err == nil {
		return nil, &Error{Line: c.line - 1 + max(next.Line, 1), Err: errTrailing}
	} else if !errors.Is(err, io.EOF) {
		return nil, c.syntaxError(err)
	}
	if root.Kind == yaml.DocumentNode && len(root.Content) == 1 {
		return root.Content[0], nil
	}
	return nil, nil
}

var linePattern = regexp.MustCompile(`^line (\d+): `)

// syntaxError finds the line of a syntax error. For mistakes in the structure
// the parser names the line above the one where the enclosing map or list
// begins, which may be far away. Its predecessor names the line above the one
// where it got stuck, so that is asked in this case.
func (c chunk) syntaxError(err error) *Error {
	line, problem := lineOf(err)
	if name, ok := strings.CutPrefix(problem, "unknown anchor '"); ok {
		name, _, _ = strings.Cut(name, "'")
		return &Error{Line: c.lineWith("*" + name), Err: fmt.Errorf("alias *%s: there is no anchor &%s before it in this document", name, name)}
	}
	if isStructural(problem) {
		line++
		var ignored any
		if other := yamlv2.Unmarshal(c.text, &ignored); other != nil {
			if l, p := lineOf(other); p == problem {
				line = l + 1
			}
		}
	}
	if problem == "did not find expected <document start>" {
		problem = errTrailing.Error()
	}
	last := 1 + bytes.Count(bytes.TrimRight(c.text, "\r\n"), []byte("\n"))
	line = min(max(line, 1), last)
	return &Error{Line: max(c.line-1+line, c.content), Err: errors.New(problem)}
}

// isStructural tells problems of the parser from those of the scanner, which
// counts lines correctly.
func isStructural(problem string) bool {
	switch strings.TrimPrefix(problem, "did not find expected ") {
	case "<document start>", "node content", "'-' indicator", "key", "',' or ']'", "',' or '}'":
		return true
	}
	return false
}

// lineOf takes the message of the parser apart; line is 0 if there is none.
func lineOf(err error) (line int, problem string) {
	problem = strings.TrimPrefix(err.Error(), "yaml: ")
	if match := linePattern.FindStringSubmatch(problem); match != nil {
		line, _ = strconv.Atoi(match[1])
		problem = problem[len(match[0]):]
	}
	return line, problem
}

// lineWith returns the first line of the stream that holds the text as a word,
// or the first one of the document.
func (c chunk) lineWith(text string) int {
	for i, line := range bytes.Split(c.text, []byte("\n")) {
		for _, word := range bytes.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r,[]{}", r) }) {
			if string(word) == text {
				return c.line + i
			}
		}
	}
	return c.content
}
