// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"errors"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
)

const (
	fastBase, fastLimit = time.Second, 30 * time.Second
	slowBase, slowLimit = 5 * time.Second, 3 * time.Minute
)

// classOf returns the retry class, or the default of the severity.
func classOf(e *result.Error) result.Retry {
	switch e.Severity {
	case result.SeverityInfo:
		return cmp.Or(e.Retry, result.RetryFast)
	case result.SeverityError:
		return cmp.Or(e.Retry, result.RetryVerySlow)
	default:
		return cmp.Or(e.Retry, result.RetrySlow)
	}
}

// urgentError returns the Error that says when an object is requeued, after a reconcile
// with this outcome, or nil if none does. Of several errors that were joined, those
// of the outcome count, and of these the one that asks for the shortest delay. The
// outermost counts where they are wrapped in each other; and where a part of
// the same outcome brings no class, the ordinary delay is not put off for the others.
func urgentError(err error, outcome result.Outcome, attempt func(result.Retry) time.Duration) *result.Error {
	var chosen *result.Error
	for _, part := range partsOf(err) {
		if result.Compute(result.Empty, part, nil).Outcome != outcome {
			continue
		}
		own, _ := part.(*result.Error)
		if own == nil && outcome == result.Failed {
			return nil
		}
		if own != nil && (chosen == nil || delayOfError(own, attempt) < delayOfError(chosen, attempt)) {
			chosen = own
		}
	}
	return chosen
}

// delayOfError returns when this error asks for another reconcile.
func delayOfError(e *result.Error, attempt func(result.Retry) time.Duration) time.Duration {
	if e.After > 0 {
		return e.After
	}
	return attempt(classOf(e))
}

// partsOf splits joined errors. Each part is an Error, or an error that holds
// none of its own; context from pkg/result around an Error hides it.
func partsOf(err error) []error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		switch c := e.(type) {
		case *result.Error:
			return []error{c}
		case *result.Stalling, *result.Waiting, *result.Generic, types.RetriableError, *types.RetriableError:
			return []error{err}
		}
		if joined, ok := e.(interface{ Unwrap() []error }); ok {
			var parts []error
			for _, branch := range joined.Unwrap() {
				parts = append(parts, partsOf(branch)...)
			}
			return parts
		}
	}
	return []error{err}
}

// notLeading is when an object is requeued that this process may not act on.
const notLeading = 5 * time.Second

// leading returns a RequeueError if this process may not act.
func (s *Sessions[T]) leading() error {
	err := s.Options.Leading()
	if _, ok := errors.AsType[*result.RequeueError](err); err == nil || ok {
		return err
	}
	return &result.RequeueError{After: notLeading, Err: err}
}

// requeueLater ends a reconcile.
func requeueLater(ctx context.Context, why *result.RequeueError) reconcile.Result {
	after := why.After
	if after <= 0 {
		after = notLeading
	}
	logf.FromContext(ctx).V(1).Info("not now; the object is requeued", "why", why.Error(), "after", after)
	return reconcile.Result{RequeueAfter: after}
}
