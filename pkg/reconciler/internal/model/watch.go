// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math/bits"
	"slices"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// The knowledge of a leader without requests: the watch of everything that has the label of the
// reconciler, of every owner. It equals the cluster, but for the objects with events that come
// late.

// lag is an object with events that reach a leader late, for good. Whenever the leader looks, it
// sees the object either as it is or as it was: so events are delayed, dropped, replayed, and
// overtake events of other objects.
type lag struct {
	leader int8
	key    plan.Key
	// known is how it was: when the events started to be late, or when the leader was
	// last answered or read it. It is nil if it was not in the watch.
	known *Object
	// listed is the object that a new process finds, in the cache of another server.
	listed *Object
}

// labelled is the object as a watch has it: nil if it does not have the label.
func (w *World) labelled(key plan.Key) *Object {
	if o := w.get(key); o != nil && o.OwnerID != "" {
		return o
	}
	return nil
}

// delay lets the events of an object come late to a leader.
func (s *State) delay(leader int8, key plan.Key) {
	was := s.world.labelled(key)
	s.late = append(slices.Clone(s.late), lag{leader, key, was, was})
}

func (s *State) isLate(leader int8, key plan.Key) (int, bool) {
	i := slices.IndexFunc(s.late, func(l lag) bool { return l.leader == leader && l.key == key })
	return i, i >= 0
}

// learn records how an object is now, from an answer to the leader.
func (s *State) learn(leader int8, key plan.Key) {
	if i, is := s.isLate(leader, key); is {
		s.late = slices.Clone(s.late)
		s.late[i].known = s.world.labelled(key)
	}
}

// dropAnswers is the effect of a crash: the next process starts with a list.
func (s *State) dropAnswers(leader int8) {
	s.late = slices.Clone(s.late)
	for i := range s.late {
		if s.late[i].leader == leader {
			s.late[i].known = s.late[i].listed
		}
	}
}

// stale returns the keys of which the leader may see an old state.
func (s *State) stale(a *actor) []plan.Key {
	var keys []plan.Key
	for _, key := range a.toRecall {
		i, is := s.isLate(a.leader, key)
		if !is {
			continue
		}
		known, now := s.late[i].known, s.world.labelled(key)
		if known != now && (known == nil || now == nil || known.UID != now.UID || known.RV != now.RV) {
			keys = append(keys, key)
		}
	}
	return keys
}

// recallMoves are one for each state that the watch may show of the objects: of each
// stale one, how it is, or how it was.
func (s *State) recallMoves(i int, moves []Move) []Move {
	moves = append(moves, Move{Kind: moveGo, Actor: int8(i)})
	for mask := 1; mask < 1<<len(s.stale(&s.actors[i])); mask++ {
		moves = append(moves, Move{Kind: moveStale, Actor: int8(i), Arg: int8(mask)})
	}
	return moves
}

// recallAll reads nothing: objects in the watch are read from there, and objects to be created are
// assumed not to exist. The rest is to be read.
func (m *Model) recallAll(s *State, a *actor, mask uint8) {
	stale := s.stale(a)
	if mask != 0 {
		s.note("of %d objects an old state is known", bits.OnesCount8(mask))
		a.disturbed = true
	}
	live, keys := cloned(a.live), a.toRecall
	a.toRecall = nil
	for _, key := range keys {
		o := s.world.labelled(key)
		if at := slices.Index(stale, key); at >= 0 && mask&(1<<at) != 0 {
			i, _ := s.isLate(a.leader, key)
			o = s.late[i].known
		}
		found, enough := m.recalled(s, a, key, o)
		if !enough {
			a.toRead = append(a.toRead[:len(a.toRead):len(a.toRead)], key)
			continue
		}
		s.note("%s is %s", key, describe(found))
		live[key] = found
	}
	a.live = live
	m.afterLook(s, a)
}

// recalled returns the known state of an object, and whether that is enough. The watch may have no
// state of it.
func (m *Model) recalled(s *State, a *actor, key plan.Key, watched *Object) (plan.Observation, bool) {
	if served, _ := s.world.defined(key.GroupKind()); !served {
		return plan.Observation{}, false
	}
	item, recorded := itemOf(a.recorded, key)
	desired := m.desiredNow(a, key)
	if watched != nil && m.Watched {
		// That an object has another owner is never assumed: we may have
		// adopted it since, and may not know it.
		me := ownerBy(a.snap.UID)
		found := sealed(me, a.key, watched.observation(false))
		return found, me.Owns(found.Ownership) && (desired == nil || !asksForAccepted(desired, item, found))
	}
	assumed := a.assumesAbsence && desired != nil && (!recorded || isUnconfirmed(item)) && !desired.Policies.Adopts().IgnoresOthers
	return plan.Observation{Existence: plan.NotFetched}, assumed
}

// asksForAccepted reports whether the values at the paths of the manifest matter.
func asksForAccepted(desired *plan.Desired, item v1alpha1.InventoryItem, found plan.Observation) bool {
	if item.Digest == "" || item.UID != found.UID {
		return desired.Policies.Reconcile == once
	}
	return item.ObservedHash != found.ObservedHash
}

// isUnconfirmed reports whether no write of the object was ever answered.
func isUnconfirmed(item v1alpha1.InventoryItem) bool {
	return item.UID == "" && item.Digest == "" && item.Phase == vocabulary.PhaseApplied
}

// assumesAbsence reports whether creations may find out by themselves that objects exist.
func (m *Model) assumesAbsence(a *actor) bool {
	return a.cause() == plan.Applying && !slices.ContainsFunc(m.desiredObjects(a), func(d plan.Desired) bool {
		item, recorded := itemOf(a.recorded, d.Key)
		return d.Policies.Adopts().RefusesAll() && (!recorded || isUnconfirmed(item))
	})
}
