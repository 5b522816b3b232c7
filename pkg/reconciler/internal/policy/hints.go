// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	hintObservedGeneration = "has-observed-generation"
	hintReadyCondition     = "has-ready-condition"
	hintConditions         = "conditions"
)

// readHints reads hints such as "has-observed-generation, conditions=Synced;Healthy".
func readHints(set *Set, text string) error {
	var hints StatusHints
	var errs []error
	items := split(text)
	if len(items) == 0 {
		errs = append(errs, errors.New("names no hint"))
	}
	for _, item := range items {
		name, value, assigned := strings.Cut(item, "=")
		switch name = Kebab(name); {
		case name == hintObservedGeneration && !assigned:
			hints.ObservedGeneration = true
		case name == hintReadyCondition && !assigned:
			hints.ReadyCondition = true
		case name == hintConditions && assigned:
			conditions, err := readConditions(value)
			if err != nil {
				errs = append(errs, err)
			}
			hints.Conditions = append(hints.Conditions, conditions...)
		default:
			errs = append(errs, fmt.Errorf("%s is not one of %s, %s, %s=<type>;<type>",
				quote(item), hintObservedGeneration, hintReadyCondition, hintConditions))
		}
	}
	set.Hints = hints
	return errors.Join(errs...)
}

// readConditions reads condition types separated by semicolons.
func readConditions(text string) ([]string, error) {
	var conditions []string
	for condition := range strings.SplitSeq(text, ";") {
		condition = strings.TrimSpace(condition)
		if condition == "" || strings.ContainsAny(condition, " =\t\n") {
			return nil, fmt.Errorf("%s=%s is not a list of condition types separated by semicolons", hintConditions, text)
		}
		if !slices.Contains(conditions, condition) {
			conditions = append(conditions, condition)
		}
	}
	return conditions, nil
}

// split cuts a list at commas and line ends and leaves out what is empty.
func split(text string) []string {
	items := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' })
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return slices.DeleteFunc(items, func(item string) bool { return item == "" })
}
