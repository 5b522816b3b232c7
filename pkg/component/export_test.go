// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SetClock replaces the clock of a reconciler before its setup.
func SetClock[T Component](r *Reconciler[T], now func() time.Time) { r.now = now }

// SetInventoryThreshold sets how many bytes of inventory stay in the status.
func SetInventoryThreshold[T Component](r *Reconciler[T], bytes int) { r.inventoryThreshold = bytes }

// DrainRequeued returns the components that something else than their dependents has requeued since
// the last call, as long as the manager does not run.
func DrainRequeued[T Component](r *Reconciler[T]) []client.ObjectKey {
	triggers := r.running.Load().triggers
	var requeued []client.ObjectKey
	for key := range triggers.Drain() {
		if !triggers.StartReconcile(key) {
			requeued = append(requeued, key)
		}
	}
	return requeued
}

// Waiters counts the components that wait for objects that they refer to.
func Waiters[T Component](r *Reconciler[T]) int {
	return r.running.Load().handler.watches.ReferenceOwners()
}

// SetPreviewLife sets how long answers to requests for previews are kept, after the setup.
func SetPreviewLife[T Component](r *Reconciler[T], life time.Duration) {
	r.running.Load().handler.previews.life = life
}

// Waiting counts the components of a namespace that wait for the controller.
func Waiting[T Component](r *Reconciler[T], namespace string) int {
	return len(r.running.Load().triggers.Waiting(namespace))
}

// NewBulkRead returns a function that reads a component that waits, and reports whether a list had it, and from when; and a
// function that notes a write of a component.
func NewBulkRead[T Component](c client.Client, kind schema.GroupVersionKind, waiting func() map[client.ObjectKey]bool, urgent func(client.ObjectKey) bool, now func() time.Time) (read func(context.Context, client.ObjectKey) (time.Time, bool), noteWrite func(client.ObjectKey, string, time.Time)) {
	reader := &bulkReader[T]{
		reader: c, cache: c, scheme: c.Scheme(), kind: kind, now: now, known: map[client.ObjectKey]T{}, walked: map[string]bool{}, alone: map[client.ObjectKey]time.Time{}, missing: map[client.ObjectKey]bool{},
		gone: map[client.ObjectKey]types.UID{}, waiting: func(string) map[client.ObjectKey]bool { return waiting() },
		urgent: urgent, prefer: func(client.ObjectKey) {},
	}
	return func(ctx context.Context, key client.ObjectKey) (time.Time, bool) {
		read, known := reader.read(ctx, key, newComponent[T]())
		return read.At, known
	}, reader.noteWrite
}
