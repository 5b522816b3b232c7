// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// Look returns the record of an object. It is known if there is one that can be
// believed. Watched tells whether all objects with our label at the place are
// known: one that is not among them was not there, or did not bear the label, when
// the watch last looked. That is no proof that it does not exist.
func (s *Store) Look(place Place, name string) (observation plan.Observation, known, watched bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	k := s.kinds[place.kind()]
	if k == nil || !place.watchable() || k.believed(place.Namespace, time.Now(), s.options.Stale) == nil {
		return plan.Observation{}, false, false
	}
	switch live := k.records.get(place.object(name)); {
	case live == nil:
		return plan.Observation{}, false, true
	case live.unread:
		return plan.Observation{}, false, false
	default:
		return live.observation(), true, true
	}
}

// Ending returns how far an object with a time to live had come when a watch saw it go. It
// is EndingUnknown if no watch did, or saw an object of another uid, or that was some time
// ago.
func (s *Store) Ending(place Place, name string, uid types.UID) plan.Finish {
	s.mu.RLock()
	defer s.mu.RUnlock()
	k := s.kinds[place.kind()]
	if k == nil || uid == "" {
		return plan.FinishUnknown
	}
	if left, known := k.records.graves.get(place.object(name)); known && left.uid == uid {
		return left.ending
	}
	return plan.FinishUnknown
}
