// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import "time"

// SetClock replaces the clock of a reconciler before its setup.
func SetClock[T Component](r *Reconciler[T], now func() time.Time) { r.now = now }

// SetInventoryThreshold sets how many bytes of inventory stay in the status.
func SetInventoryThreshold[T Component](r *Reconciler[T], bytes int) { r.inventoryThreshold = bytes }
