// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package krm

import (
	"fmt"
	"strings"
)

// Severity says how bad a result is.
type Severity string

// The severities of results.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityInfo    Severity = "info"
)

// Result is a message of a function.
type Result struct {
	Message  string   `json:"message"`
	Severity Severity `json:"severity,omitempty"`
	// ResourceRef is the object that the message is about, if it is about one.
	ResourceRef *ResourceRef `json:"resourceRef,omitempty"`
	// Field is the field that the message is about, if it is about one.
	Field *Field            `json:"field,omitempty"`
	Tags  map[string]string `json:"tags,omitempty"`
}

// ResourceRef leads to an object.
type ResourceRef struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
}

// Field leads to a field of an object.
type Field struct {
	Path string `json:"path,omitempty"`
}

// String returns the severity, the object, the field and the message.
func (r Result) String() string {
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

// complete fills in the severity, and refuses one that does not exist.
func complete(results []Result) error {
	for i := range results {
		switch results[i].Severity {
		case "":
			results[i].Severity = SeverityError
		case SeverityError, SeverityWarning, SeverityInfo:
		default:
			return fmt.Errorf("result %d of %d: severity %q, want error, warning or info", i+1, len(results), results[i].Severity)
		}
	}
	return nil
}

// failures returns the results that fail a rendering.
func failures(results []Result) []Result {
	var failed []Result
	for _, r := range results {
		if r.Severity == SeverityError {
			failed = append(failed, r)
		}
	}
	return failed
}

// listed returns the first results as one text.
func listed(results []Result) string {
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
