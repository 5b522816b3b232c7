// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package result

import (
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/types"
)

// part is one independent error of a pass, classified.
type part struct {
	outcome Outcome
	reason  string
	delay   time.Duration // Waited only; not positive: the builder's interval
	err     error
}

// urgency orders outcomes by how soon somebody has to come back.
var urgency = map[Outcome]int{Ignored: 1, Stalled: 2, Waited: 3, Failed: 4}

// mostUrgent picks the part of err that decides. Among several that wait it is
// the one with the shortest delay; the builder says what no delay means.
func mostUrgent(err error, builder RuntimeResultBuilder) part {
	var chosen part
	for _, p := range parts(err) {
		if p.outcome == Waited && p.delay <= 0 {
			p.delay = interval(builder)
		}
		sooner := p.outcome == Waited && p.delay > 0 && (chosen.delay <= 0 || p.delay < chosen.delay)
		if u, v := urgency[p.outcome], urgency[chosen.outcome]; u > v || u == v && sooner {
			chosen = p
		}
	}
	return chosen
}

// interval is the delay that follows a success.
func interval(builder RuntimeResultBuilder) time.Duration {
	return build(builder, Success, nil).RequeueAfter
}

// parts splits joined errors, and classifies each by its outermost context.
func parts(err error) []part {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if p, ok := contextOf(e); ok {
			p.err = err
			return []part{p}
		}
		if branches := branchesOf(e); len(branches) > 0 {
			var all []part
			for _, branch := range branches {
				all = append(all, parts(branch)...)
			}
			return all
		}
	}
	if errors.Is(err, reconcile.TerminalError(nil)) {
		// The controller would never come back to it.
		return []part{{outcome: Stalled, err: err}}
	}
	return []part{{outcome: Failed, err: err}}
}

// contextOf looks at this very error. It does not look further down, where
// errors.As would find context in one branch and overlook the others.
func contextOf(err error) (part, bool) {
	if c, ok := err.(interface{ context() part }); ok {
		return c.context(), true
	}
	if r, ok := err.(types.RetriableError); ok {
		return retriable(r), true
	}
	if r, ok := err.(*types.RetriableError); ok && r != nil {
		return retriable(*r), true
	}
	return part{}, false
}

func retriable(err types.RetriableError) part {
	p := part{outcome: Waited, reason: v1alpha1.ReasonRetrying}
	if d := err.RetryAfter(); d != nil {
		p.delay = *d
	}
	return p
}

func (e *Stalling) context() part {
	if e == nil {
		return part{outcome: Stalled}
	}
	return part{outcome: Stalled, reason: e.Reason}
}

func (e *Waiting) context() part {
	if e == nil {
		return part{outcome: Waited}
	}
	return part{outcome: Waited, reason: e.Reason, delay: e.RequeueAfter}
}

func (e *Generic) context() part {
	if e != nil && e.Ignore {
		return part{outcome: Ignored, reason: e.Reason}
	}
	if e == nil {
		return part{outcome: Failed}
	}
	return part{outcome: Failed, reason: e.Reason}
}

func (e *Event) context() part {
	if e == nil {
		return part{outcome: Failed}
	}
	return part{outcome: Failed, reason: e.Reason}
}

// branchesOf returns the errors that err joins, or nothing.
func branchesOf(err error) []error {
	var branches []error
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		branches = joined.Unwrap()
	} else if aggregate, ok := err.(interface{ Errors() []error }); ok {
		branches = aggregate.Errors()
	}
	present := make([]error, 0, len(branches))
	for _, branch := range branches {
		if branch != nil {
			present = append(present, branch)
		}
	}
	return present
}
