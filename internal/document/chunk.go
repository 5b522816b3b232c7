// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	yamlv2 "go.yaml.in/yaml/v2"
	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/json"
)

// checkText refuses data that is no text. The parser does so as well, but without a line.
func checkText(data []byte) *Error {
	for at, r := range string(data) {
		var err error
		switch {
		case r == utf8.RuneError && !bytes.HasPrefix(data[at:], []byte("\ufffd")):
			err = errors.New("the text is not valid UTF-8")
		case !isText(r):
			err = fmt.Errorf("the character %U is not allowed", r)
		default:
			continue
		}
		return &Error{Line: 1 + bytes.Count(data[:at], []byte("\n")), Err: err}
	}
	return nil
}

// isText reports whether YAML allows the character.
func isText(r rune) bool {
	switch {
	case r == '\t' || r == '\n' || r == '\r' || r == 0x85:
		return true
	case r < 0x20, r >= 0x7f && r < 0xa0, r == 0xfeff, r == 0xfffe, r == 0xffff:
		return false
	}
	return true
}

// chunk is the text between two document separators.
type chunk struct {
	text []byte
	// line is the line of the stream in which the text starts, content the first line that holds
	// more than blanks, comments and directives.
	line, content int
}

// split cuts the stream into its documents and leaves out empty ones. It works on lines and not
// with the parser, because the parser gives up at the first mistake, and later ones would not be
// reported.
func split(data []byte) []chunk {
	var chunks []chunk
	current := chunk{line: 1}
	start := 0
	finish := func(end int) {
		if current.content > 0 {
			current.text = data[start:end]
			chunks = append(chunks, current)
		}
	}
	for line, at := 1, 0; at < len(data); line++ {
		end := at + lineLength(data[at:])
		text := data[at:end]
		switch {
		case isMarker(text, "---"):
			finish(at)
			// The rest of the marker's line belongs to the document.
			start = at + len("---")
			current = chunk{line: line}
			text = text[len("---"):]
		case isMarker(text, "..."):
			finish(at)
			start = end
			current = chunk{line: line + 1}
			text = nil
		}
		if current.content == 0 && holdsContent(text) {
			current.content = line
		}
		at = end
	}
	finish(len(data))
	return chunks
}

// lineLength returns the length of the first line, with its end, which is a line
// feed, a carriage return, or both.
func lineLength(data []byte) int {
	i := bytes.IndexAny(data, "\r\n")
	switch {
	case i < 0:
		return len(data)
	case data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n':
		return i + 2
	}
	return i + 1
}

// isMarker reports whether the line starts with the marker as a word.
func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

// holdsContent is false for blanks, comments and directives. YAML knows more
// ends of lines than we do; with one of these, the parser has to decide.
func holdsContent(line []byte) bool {
	trimmed := bytes.Trim(line, " \t\r\n")
	isRemark := len(trimmed) == 0 || trimmed[0] == '#' || line[0] == '%'
	return !isRemark || bytes.ContainsAny(line, "\u0085\u2028\u2029")
}

var errTrailing = errors.New("want \"---\" in a line of its own before the next document")

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

// syntaxError finds the line of a syntax error. For mistakes in the structure
// the parser names the line above the one where the enclosing map or list
// starts, which may be far away. Its predecessor names the line above the one
// where it failed, so that is used in this case.
func (c chunk) syntaxError(err error) *Error {
	line, problem := lineOf(err)
	if name, ok := strings.CutPrefix(problem, "unknown anchor '"); ok {
		name, _, _ = strings.Cut(name, "'")
		before, _, _ := bytes.Cut(c.text, []byte("*"+name))
		return &Error{
			Line: c.line + bytes.Count(before, []byte("\n")),
			Err:  fmt.Errorf("alias *%s: there is no anchor &%s before it in this document", name, name),
		}
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

// isStructural reports whether a problem is one of the parser; the scanner counts lines
// correctly.
func isStructural(problem string) bool {
	switch strings.TrimPrefix(problem, "did not find expected ") {
	case "<document start>", "node content", "'-' indicator", "key", "',' or ']'", "',' or '}'":
		return true
	}
	return false
}

// lineOf splits the message of the parser; line is 0 if it has none.
func lineOf(err error) (line int, problem string) {
	problem = strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(problem, "line "); ok {
		number, after, _ := strings.Cut(rest, ": ")
		if n, err := strconv.Atoi(number); err == nil {
			return n, after
		}
	}
	return 0, problem
}

// parseJSON reads a chunk that YAML refused as a stream of JSON objects. There is JSON that is no
// YAML: characters escaped as surrogate pairs, and objects that follow each other without a
// separator. Positions within the objects are not known. It reports false for a text that is no
// JSON.
func parseJSON(c chunk) ([]Document, *Error, bool) {
	if text := bytes.TrimSpace(c.text); len(text) == 0 || text[0] != '{' {
		return nil, nil, false
	}
	var documents []Document
	decoder := stdjson.NewDecoder(bytes.NewReader(c.text))
	for {
		var raw stdjson.RawMessage
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return documents, nil, true
		} else if err != nil {
			return nil, nil, false
		}
		var value any
		if strict, err := json.UnmarshalStrict(raw, &value); err != nil || len(strict) > 0 {
			return nil, nil, false
		}
		start := int(decoder.InputOffset()) - len(raw)
		line := c.line + bytes.Count(c.text[:start], []byte("\n"))
		if err := checkJSON(raw); err != nil {
			return nil, &Error{Line: line, Err: err}, true
		}
		documents = append(documents, Document{Line: line, Value: value})
	}
}

// checkJSON refuses numbers that the decoder has changed, and deep nesting.
func checkJSON(raw []byte) error {
	decoder := stdjson.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	for depth := 0; ; {
		token, err := decoder.Token()
		if err != nil {
			return nil // the end: it was decoded before
		}
		switch token {
		case stdjson.Delim('{'), stdjson.Delim('['):
			depth++
		case stdjson.Delim('}'), stdjson.Delim(']'):
			depth--
		}
		if err := (Extent{Depth: depth}).check(len(raw)); err != nil {
			return err
		}
		if text, ok := token.(stdjson.Number); ok {
			if _, err := number(string(text)); err != nil {
				return err
			}
		}
	}
}
