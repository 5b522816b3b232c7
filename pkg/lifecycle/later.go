// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// LaterError ends a pass quietly: nothing came out of it, so nothing is judged
// and nothing is written. A Handler returns it when it has to wait for its turn.
type LaterError struct {
	// After is when the object comes again.
	After time.Duration
	// Err says what is waited for; it only goes to the log.
	Err error
}

// Error says what is waited for.
func (e *LaterError) Error() string { return e.Err.Error() }

// Unwrap returns what is waited for.
func (e *LaterError) Unwrap() error { return e.Err }

// later ends the pass.
func (p *pass[T]) later(ctx context.Context, later *LaterError) reconcile.Result {
	logf.FromContext(ctx).V(1).Info("not now; coming again", "why", later.Error(), "after", later.After)
	return reconcile.Result{RequeueAfter: max(later.After, time.Millisecond)}
}
