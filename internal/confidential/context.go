// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package confidential

import (
	"context"
	"sync/atomic"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

type contextKey struct{}

// Start returns a context that notes whether a Secret is read, and in the log of which no body
// holds a Secret. The reconcile is confidential from the beginning if that is known. A context that
// was started is returned as it is.
func Start(ctx context.Context, known bool) context.Context {
	if ctx.Value(contextKey{}) == nil {
		mark := &atomic.Bool{}
		ctx = context.WithValue(ctx, contextKey{}, mark)
		ctx = logf.IntoContext(ctx, withoutBodies(logf.FromContext(ctx), mark))
	}
	if known {
		Note(ctx)
	}
	return ctx
}

// Note makes the reconcile of the context confidential.
func Note(ctx context.Context) {
	if mark, ok := ctx.Value(contextKey{}).(*atomic.Bool); ok {
		mark.Store(true)
	}
}

// Is reports whether the reconcile of the context is confidential.
func Is(ctx context.Context) bool {
	mark, ok := ctx.Value(contextKey{}).(*atomic.Bool)
	return ok && mark.Load()
}
