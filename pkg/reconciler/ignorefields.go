// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// IgnoreFields names fields that others set on the objects of some types.
type IgnoreFields struct {
	// Type is the pattern of the types: a group, "*" or "*.suffix"; and a kind or "*".
	Type TypeInfo
	// Selector selects the objects by the labels of their manifests. Defaults to all of
	// the type.
	Selector *metav1.LabelSelector
	// Paths are JSON pointers (RFC 6901), such as /spec/replicas or
	// /metadata/annotations/example.com~1touched. Each stands for the field and everything
	// below it; a number stands for the element of a list by its position in the manifest.
	Paths []string
}

// Validate reports all mistakes of the rule in one error.
func (f IgnoreFields) Validate() error {
	_, err := f.resolve()
	return err
}

// resolve returns the rule in the form in which policies are made of it.
func (f IgnoreFields) resolve() (policy.IgnoreRule, error) {
	rule := policy.IgnoreRule{Type: f.Type, Selector: labels.Everything(), Fields: f.Paths}
	var errs []error
	if f.Type.Kind == "" {
		errs = append(errs, errors.New("the kind is missing"))
	}
	if f.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(f.Selector)
		if err != nil {
			errs = append(errs, fmt.Errorf("selector: %w", err))
		}
		rule.Selector = selector
	}
	if err := policy.CheckPointers(f.Paths); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return rule, fmt.Errorf("IgnoreFields of the type %s.%s: %w", f.Type.Kind, f.Type.Group, errors.Join(errs...))
	}
	return rule, nil
}
