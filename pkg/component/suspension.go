// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
)

// suspension is what a component says about its suspension: in its spec, or in annotations
// that a user can set without a change of the spec.
type suspension struct {
	asked bool
	// until is when it ends by itself, if it ends.
	until  time.Time
	ends   bool
	reason string
}

// suspensionOf returns the suspension of a component: of those that its spec and its
// annotations ask for, the one that remains longer. That its management policy may suspend it,
// too, is found out by the session. The error is about the annotation alone.
func (o *opener) suspensionOf(obj Component) (suspension, error) {
	annotated, err := o.annotatedSuspension(obj)
	if own := specSuspension(obj); own.remains(o.now()) > annotated.remains(o.now()) {
		return own, err
	}
	return annotated, err
}

// annotatedSuspension returns the suspension that the annotations ask for.
func (o *opener) annotatedSuspension(obj Component) (suspension, error) {
	name, annotations := o.self.Annotation(vocabulary.AnnotationSuspend), obj.GetAnnotations()
	s := suspension{asked: true, reason: annotations[o.self.Annotation(vocabulary.AnnotationSuspendReason)]}
	switch value := annotations[name]; value {
	case "", "false":
		return suspension{}, nil
	case "true":
		return s, nil
	default:
		until, err := time.Parse(time.RFC3339, value)
		if err != nil {
			return suspension{}, fmt.Errorf(`annotation %s: %q must be "true", "false" or a time such as "2026-12-01T08:00:00Z"`, name, sentence.Shorten(value, 64))
		}
		s.until, s.ends = until, true
		return s, nil
	}
}

// specSuspension returns the suspension that the spec asks for.
func specSuspension(c Component) suspension {
	own, ok := configurationOf[SuspensionConfiguration](c)
	if !ok || !own.IsSuspended() {
		return suspension{}
	}
	s := suspension{asked: true}
	if terms, ok := configurationOf[SuspensionTermsConfiguration](c); ok {
		s.until, s.reason = terms.GetSuspendUntil(), terms.GetSuspendReason()
		s.ends = !s.until.IsZero()
	}
	return s
}

// isSuspended reports whether the component is to be left as it is. A mistake in the
// annotation does not suspend it: then a full reconcile reports the mistake, and does nothing
// else.
func (o *opener) isSuspended(obj Component) bool {
	s, _ := o.suspensionOf(obj)
	return s.remains(o.now()) > 0
}

// remains returns how long the suspension goes on; 0 if there is none.
func (s suspension) remains(now time.Time) time.Duration {
	switch {
	case !s.asked:
		return 0
	case !s.ends:
		return math.MaxInt64
	default:
		return max(s.until.Sub(now), 0)
	}
}

// endsIn returns the delay after which a component is reconciled because its suspension ends; 0 if it does not end.
func (s suspension) endsIn(now time.Time) time.Duration {
	if !s.ends {
		return 0
	}
	return min(max(s.remains(now), verdict.MinInterval), maxInterval)
}

// String is the message of a component that is suspended.
func (s suspension) String() string {
	text := "suspended"
	if s.ends {
		text += " until " + s.until.UTC().Format(time.RFC3339)
	}
	if reason := strings.TrimSpace(s.reason); reason != "" {
		text += ": " + sentence.Shorten(reason, verdict.MaxSentence)
	}
	return text
}
