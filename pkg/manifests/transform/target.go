// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"errors"
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// target is a v1alpha1.PatchTarget that is known to be right.
type target struct {
	group, version, kind, name, namespace *regexp.Regexp
	labels, annotations                   labels.Selector
}

// parseTarget returns a target that matches everything for nil.
func parseTarget(t *v1alpha1.PatchTarget) (*target, error) {
	if t == nil {
		t = &v1alpha1.PatchTarget{}
	}
	var errs []error
	expression := func(field, text string) *regexp.Regexp {
		if text == "" {
			return nil
		}
		compiled, err := regexp.Compile("^(?:" + text + ")$")
		if err != nil {
			errs = append(errs, fmt.Errorf("target: %s: %w", field, err))
		}
		return compiled
	}
	selector := func(field, text string) labels.Selector {
		parsed, err := labels.Parse(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("target: %s: %w", field, err))
		}
		return parsed
	}
	parsed := &target{
		group: expression("group", t.Group), version: expression("version", t.Version), kind: expression("kind", t.Kind),
		name: expression("name", t.Name), namespace: expression("namespace", t.Namespace),
		labels: selector("labelSelector", t.LabelSelector), annotations: selector("annotationSelector", t.AnnotationSelector),
	}
	return parsed, errors.Join(errs...)
}

// matches tells whether the object is meant; objects without a namespace count
// as in the given one.
func (t *target) matches(object *unstructured.Unstructured, namespace string) bool {
	if own := object.GetNamespace(); own != "" {
		namespace = own
	}
	gvk := object.GroupVersionKind()
	return fits(t.group, gvk.Group) && fits(t.version, gvk.Version) && fits(t.kind, gvk.Kind) &&
		fits(t.name, object.GetName()) && fits(t.namespace, namespace) &&
		t.labels.Matches(labels.Set(object.GetLabels())) && t.annotations.Matches(labels.Set(object.GetAnnotations()))
}

func fits(expression *regexp.Regexp, value string) bool {
	return expression == nil || expression.MatchString(value)
}
