// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/json"
)

// parseJSON reads a chunk that YAML refused as a stream of JSON objects. There
// is JSON that is no YAML: characters escaped as surrogate pairs, and objects
// that follow each other without a separator. Positions within the objects are
// not known. It reports false for what is no JSON.
func parseJSON(c chunk) ([]Document, []*Error, bool) {
	if text := bytes.TrimSpace(c.text); len(text) == 0 || text[0] != '{' {
		return nil, nil, false
	}
	var documents []Document
	var failed []*Error
	decoder := stdjson.NewDecoder(bytes.NewReader(c.text))
	for {
		var raw stdjson.RawMessage
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return documents, failed, true
		} else if err != nil {
			return nil, nil, false
		}
		var value any
		if strict, err := json.UnmarshalStrict(raw, &value); err != nil || len(strict) > 0 || tooDeep(value, 0) {
			return nil, nil, false
		}
		start := int(decoder.InputOffset()) - len(raw)
		line := c.line + bytes.Count(c.text[:start], []byte("\n"))
		if err := checkNumbers(raw); err != nil {
			failed = append(failed, &Error{Line: line, Err: err})
		}
		documents = append(documents, Document{Line: line, Value: value})
	}
}

// checkNumbers refuses numbers that the decoder would change.
func checkNumbers(raw []byte) error {
	decoder := stdjson.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		if err != nil {
			return nil // the end: it was decoded before
		}
		if number, ok := token.(stdjson.Number); ok {
			if _, err := scalar(&yaml.Node{Kind: yaml.ScalarNode, Value: string(number)}); err != nil {
				return err
			}
		}
	}
}

func tooDeep(value any, depth int) bool {
	if depth > maxDepth {
		return true
	}
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			if tooDeep(v, depth+1) {
				return true
			}
		}
	case []any:
		for _, v := range value {
			if tooDeep(v, depth+1) {
				return true
			}
		}
	}
	return false
}
