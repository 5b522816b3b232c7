// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

const (
	// left is for how long a lease counts as held after it was renewed last. It allows for clocks that differ.
	//
	// Limit: the time for which the lease of an operator counts as held after its renewal, or twice its duration.
	left = time.Minute
	// defaultDuration is the duration of a lease without one, as in client-go.
	defaultDuration = 15 * time.Second
)

// Holding is who holds a lease.
type Holding struct {
	// Holder is the process that held it last; empty if it was given up.
	Holder string
	// Renewed is when it was renewed last; zero if that is unknown.
	Renewed time.Time
	// Duration is for how long a renewal lasts.
	Duration time.Duration
	// Held reports whether the holder counts as alive.
	Held bool
}

// Of judges a lease.
func Of(lease *coordinationv1.Lease, now time.Time) Holding {
	h := Holding{Duration: defaultDuration}
	if lease.Spec.HolderIdentity != nil {
		h.Holder = *lease.Spec.HolderIdentity
	}
	if lease.Spec.RenewTime != nil {
		h.Renewed = lease.Spec.RenewTime.Time
	}
	if lease.Spec.LeaseDurationSeconds != nil {
		h.Duration = time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
	}
	h.Held = h.Holder != "" && !h.Renewed.IsZero() && now.Sub(h.Renewed) < max(left, 2*h.Duration)
	return h
}
