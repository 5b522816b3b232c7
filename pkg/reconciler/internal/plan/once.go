// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/corbel-run/corbel/api/v1alpha1"

// over tells whether the object had its time and is gone: it did its work and
// was purged, or it is applied only once. It is not created again, and what
// somebody else put in its place is left alone.
func (u *unit) over() bool {
	return (u.completed() || u.appliedOnce()) && u.live.known() && !u.isOurs()
}

// retire settles an object that is over.
func (u *unit) retire() {
	u.settled = true
	if u.completed() || u.isHook() {
		u.item.Phase = v1alpha1.PhaseCompleted
	}
}

// completed tells whether the object did its work, and its manifest is unchanged.
func (u *unit) completed() bool {
	purged := u.item.Phase == v1alpha1.PhaseCompleted || u.item.Phase == v1alpha1.PhaseCompleting
	return purged && u.desired.Policies.Order.Purge != nil && (u.same() || u.isHook())
}

// appliedOnce reports whether the object must not be touched again. One that
// is ours was applied, even if the answer was lost.
func (u *unit) appliedOnce() bool {
	if u.isHook() {
		return false // it runs once in any case, and has to
	}
	switch u.desired.Policies.Reconcile {
	case v1alpha1.ReconcilePolicyOnce:
		return u.item.Digest != "" || u.isOurs()
	case v1alpha1.ReconcilePolicyOncePerManifest:
		// Of which manifest an object was made is known from the record only.
		return u.same()
	}
	return false
}
