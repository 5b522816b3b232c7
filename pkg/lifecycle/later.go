// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// LaterError ends a pass quietly: nothing came out of it, so nothing is judged
// and nothing is written. A Handler returns it when it has to wait for its turn.
type LaterError struct {
	// After is when the object comes again. Default is 5 seconds.
	After time.Duration
	// Err says what is waited for; it only goes to the log.
	Err error
}

// Error says what is waited for.
func (e *LaterError) Error() string {
	if e.Err == nil {
		return "not now"
	}
	return e.Err.Error()
}

// Unwrap returns what is waited for.
func (e *LaterError) Unwrap() error { return e.Err }

// PassesByItself says so, for the locks of pkg/steps.
func (e *LaterError) PassesByItself() bool { return true }

// notLeading is when an object comes again that is not this process's to act on.
const notLeading = 5 * time.Second

// leading returns a LaterError if this process may not act.
func (s *Sessions[T]) leading() error {
	err := s.options.Leading()
	if _, ok := errors.AsType[*LaterError](err); err == nil || ok {
		return err
	}
	return &LaterError{After: notLeading, Err: err}
}

// later ends a pass.
func later(ctx context.Context, why *LaterError) reconcile.Result {
	after := why.After
	if after <= 0 {
		after = notLeading
	}
	logf.FromContext(ctx).V(1).Info("not now; coming again", "why", why.Error(), "after", after)
	return reconcile.Result{RequeueAfter: after}
}
