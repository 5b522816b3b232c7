// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"time"

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
		if triggers.StartReconcile(key); !triggers.TakeCauses(key) {
			requeued = append(requeued, key)
		}
	}
	return requeued
}

// SetPreviewLife sets how long answers to requests for previews are kept, after the setup.
func SetPreviewLife[T Component](r *Reconciler[T], life time.Duration) {
	r.running.Load().handler.previews.life = life
}
