// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conditionstest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/conditions"
)

// Check reports every rule that the object breaks as an error of the test.
func Check(t testing.TB, obj conditions.Getter) {
	t.Helper()
	for _, err := range Errors(obj) {
		t.Errorf("conditions of %s/%s: %v", obj.GetNamespace(), obj.GetName(), err)
	}
}

// Errors returns one error per broken rule. The rules, for an object after its
// first pass:
//
//   - Ready is there.
//   - Reconciling and Stalled are True or absent, and never both there.
//   - While Ready is True there is neither.
//   - While Stalled is there, Ready is False.
//   - While Ready is Unknown, Reconciling is there or Ready's reason is Suspended.
//   - No generation that was observed is ahead of the object's.
//   - There is one condition per type, and each is complete and bounded:
//     CamelCase reason, a time of transition, a message of at most [conditions.MaxMessage] bytes.
func Errors(obj conditions.Getter) []error {
	errs := ready(obj)
	errs = append(errs, reconcilingAndStalled(obj)...)
	errs = append(errs, observedGeneration(obj)...)
	seen := map[string]bool{}
	for _, condition := range obj.GetConditions() {
		if seen[condition.Type] {
			errs = append(errs, fmt.Errorf("%s is there more than once", condition.Type))
		}
		seen[condition.Type] = true
		errs = append(errs, form(condition, obj.GetGeneration())...)
	}
	return errs
}

func ready(obj conditions.Getter) []error {
	condition := conditions.Get(obj, v1alpha1.ConditionReady)
	if condition == nil {
		return []error{errors.New("Ready is missing")}
	}
	reconciling := conditions.Has(obj, v1alpha1.ConditionReconciling)
	stalled := conditions.Has(obj, v1alpha1.ConditionStalled)
	var errs []error
	if condition.Status == metav1.ConditionTrue && reconciling {
		errs = append(errs, errors.New("Ready is True, but Reconciling is there"))
	}
	if condition.Status != metav1.ConditionFalse && stalled {
		errs = append(errs, fmt.Errorf("Stalled is there, but Ready is %s", condition.Status))
	}
	if condition.Status == metav1.ConditionUnknown && !reconciling && condition.Reason != vocabulary.ReasonSuspended {
		errs = append(errs, fmt.Errorf("Ready is Unknown for the reason %s, but Reconciling is missing", condition.Reason))
	}
	return errs
}

func reconcilingAndStalled(obj conditions.Getter) []error {
	var errs []error
	present := 0
	for _, conditionType := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
		condition := conditions.Get(obj, conditionType)
		if condition == nil {
			continue
		}
		present++
		if condition.Status != metav1.ConditionTrue {
			errs = append(errs, fmt.Errorf("%s is %s, it must be True or absent", conditionType, condition.Status))
		}
	}
	if present == 2 {
		errs = append(errs, errors.New("Reconciling and Stalled are both there"))
	}
	return errs
}

// observedGeneration looks into the serialised form, because objects need no
// method for this field.
func observedGeneration(obj conditions.Getter) []error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(conditions.ObjectOf(obj))
	if err != nil {
		return []error{fmt.Errorf("convert the object: %w", err)}
	}
	observed, _, err := unstructured.NestedInt64(content, "status", "observedGeneration")
	if err != nil {
		return []error{fmt.Errorf("read status.observedGeneration: %w", err)}
	}
	if observed > obj.GetGeneration() {
		return []error{fmt.Errorf("status.observedGeneration %d is ahead of generation %d", observed, obj.GetGeneration())}
	}
	return nil
}

var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9_,:]*$`)

var statuses = []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}

func form(condition metav1.Condition, generation int64) []error {
	var errs []error
	if !slices.Contains(statuses, condition.Status) {
		errs = append(errs, fmt.Errorf("%s has the status %q", condition.Type, condition.Status))
	}
	if !camelCase.MatchString(condition.Reason) {
		errs = append(errs, fmt.Errorf("%s has the reason %q, which is not CamelCase", condition.Type, condition.Reason))
	}
	if len(condition.Message) > conditions.MaxMessage {
		errs = append(errs, fmt.Errorf("%s has a message of %d bytes", condition.Type, len(condition.Message)))
	}
	if !utf8.ValidString(condition.Message) {
		errs = append(errs, fmt.Errorf("%s has a message that is not UTF-8", condition.Type))
	}
	if condition.LastTransitionTime.IsZero() {
		errs = append(errs, fmt.Errorf("%s has no time of transition", condition.Type))
	}
	if condition.ObservedGeneration > generation {
		errs = append(errs, fmt.Errorf("%s has the observed generation %d, which is ahead of %d", condition.Type, condition.ObservedGeneration, generation))
	}
	return errs
}
