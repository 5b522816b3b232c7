// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"io"

	"sigs.k8s.io/json"
)

// parseJSON reads a chunk that YAML refused as a stream of JSON objects. There
// is JSON that is no YAML: characters escaped as surrogate pairs, and objects
// that follow each other without a separator. Positions within the objects are
// not known.
func parseJSON(c chunk) ([]Document, bool) {
	if text := bytes.TrimSpace(c.text); len(text) == 0 || text[0] != '{' {
		return nil, false
	}
	var documents []Document
	decoder := stdjson.NewDecoder(bytes.NewReader(c.text))
	for {
		var raw stdjson.RawMessage
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return documents, true
		} else if err != nil {
			return nil, false
		}
		var value any
		if strict, err := json.UnmarshalStrict(raw, &value); err != nil || len(strict) > 0 || tooDeep(value, 0) {
			return nil, false
		}
		start := int(decoder.InputOffset()) - len(raw)
		line := c.line + bytes.Count(c.text[:start], []byte("\n"))
		documents = append(documents, Document{Line: line, Value: value})
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
