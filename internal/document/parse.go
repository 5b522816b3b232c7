// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/corbel-run/corbel/internal/guard"
)

// Document is one document of a stream that holds something.
type Document struct {
	// Number counts the documents of the stream that hold something, from 1.
	Number int
	// Line is the line of the stream in which the content starts, from 1.
	Line int
	// Value is the content.
	Value any

	// node is the content with its positions, nil if these are not known; offset has to be added to
	// them.
	node   *yaml.Node
	offset int
}

// Options are for texts that other programs read in another way.
type Options struct {
	// LastKeyWins accepts keys that are set twice.
	LastKeyWins bool
	// Core reads words as YAML 1.2 does, in which "yes" is a text, and times as full
	// timestamps.
	Core bool
}

// Parse reads a stream. Documents that hold nothing (or null) are left out. There is at most one
// error for each document; all other documents are read nevertheless.
func Parse(data []byte) ([]Document, []*Error) { return Options{}.Parse(data) }

// Parse reads a stream as the function Parse does.
func (o Options) Parse(data []byte) ([]Document, []*Error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if err := checkText(data); err != nil {
		return nil, []*Error{err}
	}
	var documents []Document
	var errs []*Error
	number := 0
	all := &stream{Options: o, size: len(data)}
	for _, c := range split(data) {
		parsed, err := all.parseSafely(c)
		if err != nil {
			number++
			err.Document = number
			errs = append(errs, err)
			continue
		}
		for _, d := range parsed {
			if d.Value != nil {
				number++
				d.Number = number
				documents = append(documents, d)
			}
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

// FromNode returns the value of a node that was parsed already, after its extent was
// checked. The error names no line.
func (o Options) FromNode(n *yaml.Node) (any, error) {
	value, mistake := converter{Options: o}.value(n)
	if mistake != nil {
		return nil, mistake.Err
	}
	return value, nil
}

// stream is a stream that is being read.
type stream struct {
	Options
	size   int    // in bytes
	extent Extent // of the documents that were read
}

// parseSafely is parse. A panic of the YAML library becomes an error.
func (s *stream) parseSafely(c chunk) (documents []Document, err *Error) {
	if failed := guard.Call(func() error { documents, err = s.parse(c); return nil }); failed != nil {
		return nil, &Error{Line: c.content, Err: fmt.Errorf("the parser %w", failed)}
	}
	return documents, err
}

// parse reads the text between two separators. That is one document, but for JSON objects that
// follow each other.
func (s *stream) parse(c chunk) ([]Document, *Error) {
	node, err := parseNode(c)
	if err != nil {
		if documents, mistake, ok := parseJSON(c); ok {
			return documents, mistake
		}
		return nil, err
	}
	if node == nil {
		return nil, nil
	}
	offset := c.line - 1
	extent, problem := extentOf(node)
	if problem != nil {
		problem.Line += offset
		return nil, problem
	}
	s.extent.add(extent)
	if exceeded := s.extent.check(s.size); exceeded != nil {
		return nil, &Error{Line: c.content, Err: exceeded}
	}
	value, err := converter{s.Options, offset}.value(node)
	if err != nil {
		return nil, err
	}
	return []Document{{Line: c.content, Value: value, node: node, offset: offset}}, nil
}

// LineOf returns the line of the stream in which the value at the path starts; the path consists of
// keys (string) and positions in lists (int). If the path leads nowhere, it is the line of the last
// value that exists on it. Values that came through aliases and merges have the line of their
// target.
func (d Document) LineOf(path ...any) int {
	line, node := d.Line, d.node
	for _, step := range path {
		if node = resolved(node); node == nil {
			return line
		}
		position := 0
		switch step := step.(type) {
		case string:
			position, node = Options{}.child(node, step)
		case int:
			if node.Kind != yaml.SequenceNode || step >= len(node.Content) {
				return line
			}
			node = node.Content[step]
			position = node.Line
		}
		if node == nil {
			return line
		}
		line = d.offset + position
	}
	return line
}

// child returns the value of a key and the line of the key.
func (o Options) child(n *yaml.Node, name string) (int, *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		return 0, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key, err := o.keyOf(n.Content[i]); err == nil && key == name {
			return n.Content[i].Line, n.Content[i+1]
		}
	}
	return 0, nil
}
