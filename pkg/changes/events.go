// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// listener tells the memory what the cache sees, and queues what is worth a pass.
type listener struct {
	memory *memory
	next   handler.EnqueueRequestForObject
}

var _ handler.EventHandler = (*listener)(nil)

// Create implements handler.EventHandler.
func (l *listener) Create(ctx context.Context, e event.CreateEvent, q queue) {
	l.memory.appeared(e.Object)
	l.next.Create(ctx, e, q)
}

// Update implements handler.EventHandler.
func (l *listener) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	if l.memory.replaced(e.ObjectOld, e.ObjectNew) {
		l.next.Update(ctx, e, q)
	}
}

// Delete implements handler.EventHandler.
func (l *listener) Delete(ctx context.Context, e event.DeleteEvent, q queue) {
	l.memory.disappeared(e.Object)
	l.next.Delete(ctx, e, q)
}

// Generic implements handler.EventHandler. A cache has no such events.
func (l *listener) Generic(context.Context, event.GenericEvent, queue) {}
