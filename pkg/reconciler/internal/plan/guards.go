// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/corbel-run/corbel/api/v1alpha1"

// guarded gives a deletion its guard, and what the guard must know: which
// instances of a type are in the record. An object that is recorded as released,
// or is just now dropped from the record, is not ours, and one that was left
// behind is not recorded any more.
func (w *work) guarded(s Step, u *unit) Step {
	s.Guard = guardOf(u)
	if s.Guard != GuardNoInstances {
		return s
	}
	own := managedTypes{patterns: u.item.Defines}
	for _, other := range w.units {
		if other.recorded && !other.dropped && other.item.Phase != v1alpha1.PhaseReleased && own.manages(other.key.GroupKind()) {
			s.Own = append(s.Own, other.key)
		}
	}
	return s
}
