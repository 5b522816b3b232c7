// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/manifests/internal/document"
)

// maxText limits the text of one patch, in bytes.
const maxText = 1 << 20

// text is a patch that was parsed: operations, or objects to merge.
type text struct {
	operations *operations
	objects    []*unstructured.Unstructured
}

func parseText(patch string) (*text, error) {
	if len(patch) > maxText {
		return nil, fmt.Errorf("it is longer than %d bytes", maxText)
	}
	documents, mistakes := document.Parse([]byte(patch))
	if len(mistakes) > 0 {
		return nil, fmt.Errorf("line %d: %w", mistakes[0].Line, mistakes[0].Err)
	}
	parsed := &text{}
	for _, d := range documents {
		switch value := d.Value.(type) {
		case []any:
			if len(documents) > 1 {
				return nil, errors.New("JSON patch operations must be one list")
			}
			list, err := parseOperations(value)
			parsed.operations = &list
			return parsed, err
		case map[string]any:
			if err := checkSize(value); err != nil {
				return nil, fmt.Errorf("line %d: %w", d.Line, err)
			}
			parsed.objects = append(parsed.objects, &unstructured.Unstructured{Object: value})
		default:
			return nil, fmt.Errorf("line %d: want a merge patch or a list of JSON patch operations", d.Line)
		}
	}
	if len(parsed.objects) == 0 {
		return nil, errors.New("it is empty")
	}
	return parsed, nil
}
