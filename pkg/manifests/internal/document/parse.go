// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Document is one document of a stream that holds something.
type Document struct {
	// Number counts the documents of the stream that hold something, from 1.
	Number int
	// Line is the line of the stream in which the content begins, from 1.
	Line int
	// Value is the content.
	Value any

	// node is the content with its positions, nil if these are not known;
	// offset is what has to be added to them.
	node   *yaml.Node
	offset int
}

// Error is a mistake in a stream.
type Error struct {
	// Document and Line say where, see Document; Document is 0 if the mistake
	// concerns the stream.
	Document, Line int
	Err            error
}

// Error returns the place and the mistake.
func (e *Error) Error() string {
	return fmt.Sprintf("document %d, line %d: %v", e.Document, e.Line, e.Err)
}

// Unwrap returns the mistake.
func (e *Error) Unwrap() error { return e.Err }

// Parse reads a stream. Documents that hold nothing (or null) are left out. A
// mistake in one document does not keep the others from being read.
func Parse(data []byte) ([]Document, []*Error) {
	data, err := clean(data)
	if err != nil {
		return nil, []*Error{err}
	}
	var documents []Document
	var errs []*Error
	number := 0
	aliased := &expansion{}
	for _, c := range split(data) {
		parsed, failed := parseChunk(c, aliased)
		for _, d := range parsed {
			if d.Value == nil {
				continue
			}
			number++
			d.Number = number
			documents = append(documents, d)
		}
		if len(failed) > 0 {
			number++
		}
		for _, e := range failed {
			e.Document = number
			errs = append(errs, e)
		}
	}
	return documents, errs
}

// Value reads a text that is one document; an empty one is nil.
func Value(data []byte) (any, error) {
	documents, errs := Parse(data)
	switch {
	case len(errs) > 0:
		return nil, fmt.Errorf("line %d: %w", errs[0].Line, errs[0].Err)
	case len(documents) > 1:
		return nil, fmt.Errorf("line %d: want one document, got %d", documents[1].Line, len(documents))
	case len(documents) == 0:
		return nil, nil
	}
	return documents[0].Value, nil
}

// parseChunk reads what stands between two separators. That is one document,
// but for a stream of JSON objects.
func parseChunk(c chunk, aliased *expansion) (documents []Document, errs []*Error) {
	defer func() {
		if value := recover(); value != nil {
			documents, errs = nil, []*Error{{Line: c.content, Err: fmt.Errorf("the parser failed: %v", value)}}
		}
	}()
	node, err := parseNode(c)
	if err != nil {
		if documents, failed, ok := parseJSON(c); ok {
			return documents, failed
		}
		return nil, []*Error{err}
	}
	if node == nil {
		return nil, nil
	}
	v := &converter{offset: c.line - 1, aliased: aliased}
	value, ok := v.value(node, 0)
	if !ok {
		return nil, v.errs
	}
	return []Document{{Line: c.content, Value: value, node: node, offset: v.offset}}, nil
}

var errTrailing = errors.New("want \"---\" in a line of its own before the next document")
