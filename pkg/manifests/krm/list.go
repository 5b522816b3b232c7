// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package krm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/document"
)

const (
	listKind    = "ResourceList"
	listVersion = "config.kubernetes.io/v1"
)

// list is what a function gave.
type list struct {
	objects []*unstructured.Unstructured
	results []Result
}

// encode returns the input of a function.
func encode(config map[string]any, objects []*unstructured.Unstructured) ([]byte, error) {
	items := make([]any, len(objects))
	for i, object := range objects {
		items[i] = object.Object
	}
	return yaml.Marshal(map[string]any{
		"apiVersion": listVersion, "kind": listKind, "functionConfig": config, "items": items,
	})
}

// parse reads the output of a function.
func parse(output []byte) (*list, error) {
	if len(bytes.TrimSpace(output)) == 0 {
		return nil, errors.New("it is empty, want a " + listKind)
	}
	value, err := document.Value(output)
	if err != nil {
		return nil, err
	}
	content, ok := value.(map[string]any)
	if !ok || content["kind"] != listKind {
		return nil, fmt.Errorf("want an object of kind %s", listKind)
	}
	switch content["apiVersion"] {
	case listVersion, "config.kubernetes.io/v1beta1", "config.kubernetes.io/v1alpha1":
	default:
		return nil, fmt.Errorf("apiVersion %v, want %s", content["apiVersion"], listVersion)
	}
	parsed := &list{}
	if parsed.results, err = parseResults(content["results"]); err != nil {
		return nil, err
	}
	parsed.objects, err = parseItems(content["items"])
	return parsed, err
}

func parseResults(value any) ([]Result, error) {
	if value == nil {
		return nil, nil
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var results []Result
	if err := json.Unmarshal(encoded, &results); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	return results, complete(results)
}

// parseItems checks the objects as those in a file are checked.
func parseItems(value any) ([]*unstructured.Unstructured, error) {
	if value == nil {
		return nil, nil
	}
	items, ok := value.([]any)
	if !ok {
		return nil, errors.New("items: want a list")
	}
	var objects []*unstructured.Unstructured
	var errs []error
	for i, item := range items {
		name := fmt.Sprintf("items[%d]", i)
		data, err := yaml.Marshal(item)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		decoded, err := manifests.Decode(name, data)
		if err == nil && len(decoded) != 1 {
			err = fmt.Errorf("%s: want an object", name)
		}
		errs = append(errs, err)
		objects = append(objects, decoded...)
	}
	return objects, errors.Join(errs...)
}
