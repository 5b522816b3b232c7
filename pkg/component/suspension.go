// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"strings"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// suspension is what a component says about its suspension: in its spec, or in annotations
// that a user can set without a change of the spec.
type suspension struct {
	asked bool
	// until is when it ends by itself; zero if it does not.
	until  time.Time
	reason string
}

// suspensionOf returns the suspension of a component. The annotations of the component
// count first. That its management policy may suspend it, too, is found out by the session.
func (h *handler[T]) suspensionOf(obj T) (suspension, error) {
	name := h.settings.name + "/" + v1alpha1.AnnotationSuspend
	if value := obj.GetAnnotations()[name]; value != "" && value != "false" {
		s := suspension{asked: true, reason: obj.GetAnnotations()[h.settings.name+"/"+v1alpha1.AnnotationSuspendReason]}
		if value == "true" {
			return s, nil
		}
		var err error
		if s.until, err = time.Parse(time.RFC3339, value); err != nil {
			return suspension{}, fmt.Errorf(`annotation %s: %q must be "true", "false" or a time such as "2026-12-01T08:00:00Z"`, name, value)
		}
		return s, nil
	}
	own, ok := configurationOf[SuspensionConfiguration](obj)
	if !ok || !own.IsSuspended() {
		return suspension{}, nil
	}
	s := suspension{asked: true}
	if terms, ok := configurationOf[SuspensionTermsConfiguration](obj); ok {
		s.until, s.reason = terms.GetSuspendUntil(), terms.GetSuspendReason()
	}
	return s, nil
}

// isSuspended reports whether the component is to be left as it is. A mistake in its
// annotations does not suspend it: then a full reconcile reports the mistake, and does nothing
// else.
func (h *handler[T]) isSuspended(obj T) bool {
	s, err := h.suspensionOf(obj)
	return err == nil && s.remains(h.now()) > 0
}

// forever is how long a suspension without an end remains.
const forever = 1<<63 - 1

// remains returns how long the suspension goes on; 0 if there is none.
func (s suspension) remains(now time.Time) time.Duration {
	switch {
	case !s.asked:
		return 0
	case s.until.IsZero():
		return forever
	default:
		return max(s.until.Sub(now), 0)
	}
}

// String is the message of a component that is suspended.
func (s suspension) String() string {
	text := "suspended"
	if !s.until.IsZero() {
		text += " until " + s.until.UTC().Format(time.RFC3339)
	}
	if reason := strings.TrimSpace(s.reason); reason != "" {
		text += ": " + reason
	}
	return text
}
