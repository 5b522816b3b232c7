// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package krm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/document"
)

const (
	listKind    = "ResourceList"
	listVersion = "config.kubernetes.io/v1"
)

// list is the output of a function.
type list struct {
	objects []*unstructured.Unstructured
	results []result
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

func parseResults(value any) ([]result, error) {
	if value == nil {
		return nil, nil
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var results []result
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
		decoded, err := document.Decode(name, data)
		if err == nil && len(decoded) != 1 {
			err = fmt.Errorf("%s: want an object", name)
		}
		errs = append(errs, err)
		objects = append(objects, decoded...)
	}
	return objects, errors.Join(errs...)
}

// severity is the severity of a result.
type severity string

// The severities of results.
const (
	severityError   severity = "error"
	severityWarning severity = "warning"
	severityInfo    severity = "info"
)

// result is a message of a function.
type result struct {
	Message  string   `json:"message"`
	Severity severity `json:"severity,omitempty"`
	// ResourceRef is the object that the message is about, if it is about one.
	ResourceRef *resourceRef `json:"resourceRef,omitempty"`
	// Field is the field that the message is about, if it is about one.
	Field *field            `json:"field,omitempty"`
	Tags  map[string]string `json:"tags,omitempty"`
}

// resourceRef leads to an object.
type resourceRef struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
}

// field leads to a field of an object.
type field struct {
	Path string `json:"path,omitempty"`
}

// String returns the severity, the object, the field and the message.
func (r result) String() string {
	text := string(r.Severity) + ": "
	if ref := r.ResourceRef; ref != nil && ref.Kind+ref.Name != "" {
		if ref.Namespace != "" {
			text += fmt.Sprintf("%s %s/%s: ", ref.Kind, ref.Namespace, ref.Name)
		} else {
			text += fmt.Sprintf("%s %s: ", ref.Kind, ref.Name)
		}
	}
	if r.Field != nil && r.Field.Path != "" {
		text += r.Field.Path + ": "
	}
	return text + r.Message
}

// complete fills in the severity, and refuses an unknown one.
func complete(results []result) error {
	for i := range results {
		switch results[i].Severity {
		case "":
			results[i].Severity = severityError
		case severityError, severityWarning, severityInfo:
		default:
			return fmt.Errorf("result %d of %d: severity %q, want error, warning or info", i+1, len(results), results[i].Severity)
		}
	}
	return nil
}

// failures returns the results that fail a rendering.
func failures(results []result) []result {
	var failed []result
	for _, r := range results {
		if r.Severity == severityError {
			failed = append(failed, r)
		}
	}
	return failed
}

// listed returns the first results as one text.
func listed(results []result) string {
	const most = 10
	var lines []string
	for _, r := range results[:min(len(results), most)] {
		lines = append(lines, r.String())
	}
	if more := len(results) - most; more > 0 {
		lines = append(lines, fmt.Sprintf("%d more", more))
	}
	return strings.Join(lines, "; ")
}
