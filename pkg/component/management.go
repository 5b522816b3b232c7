// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"strings"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// management says what may be done about a component's dependents at all.
type management string

const (
	manage management = "manage"
	// manageNothing leaves the dependents alone, also when the component is deleted.
	manageNothing management = "skip"
	// detachOnDelete leaves the dependents alone when the component is deleted.
	detachOnDelete management = "detach-on-delete"
)

// managementOf reads the annotation of the component. With a value that does not
// exist nothing may be done: it may have been meant to prevent a deletion.
func managementOf(c Component, reconcilerName string) (management, error) {
	annotation := reconcilerName + "/" + v1alpha1.AnnotationManagementPolicy
	value, ok := c.GetAnnotations()[annotation]
	if !ok {
		return manage, nil
	}
	for _, known := range []management{manage, manageNothing, detachOnDelete} {
		if plain(value) == plain(string(known)) {
			return known, nil
		}
	}
	return "", fmt.Errorf("annotation %s: %q must be one of %s, %s, %s", annotation, value, manage, manageNothing, detachOnDelete)
}

// plain makes kebab-case and CamelCase the same.
func plain(value string) string {
	return strings.ToLower(strings.ReplaceAll(value, "-", ""))
}

// skipOf says whether, and why, the dependents are to be left alone.
func skipOf(c Component, s settings) skip {
	if policy, err := managementOf(c, s.name); err == nil && policy == manageNothing {
		return skippedByPolicy
	}
	if own, ok := configurationOf[SuspensionConfiguration](c); ok && own.IsSuspended() {
		return skippedBySpec
	}
	return notSkipped
}
