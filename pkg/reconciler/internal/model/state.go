// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// State is everything at one moment. A State is never changed: every Move makes a new one.
type State struct {
	world  World
	actors []actor
	budget int8 // of disturbances
	active int8 // the leader that has the lease
	key    int8 // the digest key
	// halves of the timeout have passed since the start of time.
	halves int8
	// unread has a bit for each number of halves at which the content of a namespace
	// could not be read.
	unread uint8
	late   []lag // ordered by when they fell behind
	truth  truth

	// The rest describes the last Move, and is no part of the state.

	violation   string
	writes      int // requests that changed something
	description string
	// carried are the steps that the last fold found carried out, waiting are the waits of the
	// reconcile that ended.
	carried []plan.Step
	waiting []plan.Wait
	read    plan.Key // the object that was read; empty if none was
	sent    bool     // a request of a step was sent
}

// stage is where a leader is in its reconcile of a component.
type stage int8

const (
	idle stage = iota
	addingFinalizer
	lookingForBlockers
	looking
	recording
	executing
	finishing
	removingFinalizer
)

// actor is one leader at work on one component. Its maps and slices are never changed in place.
type actor struct {
	component, leader int8
	key               int8 // the digest key
	at                stage
	snap              *Component // as it was read, or as our last write was answered
	recorded          []v1alpha1.InventoryItem
	live              map[plan.Key]plan.Observation
	failed            map[plan.Key]plan.Failure
	accepted          map[plan.Key]bool
	reads, writes     map[plan.Key]int
	toRecall          []plan.Key // to be looked up in the watch, before the next plan
	toRead            []plan.Key // to be read, after that
	assumesAbsence    bool       // that an unknown object does not exist
	plan              *plan.Plan
	stageAt           int    // the first step of the stage that is executed
	executed, guarded uint32 // bits of the plan's steps
	results           []plan.Result
	// unreachable: a request got no answer, so that the reconcile ends.
	unreachable bool
	// disturbed: another client changed something since the reconcile started.
	disturbed bool
}

// Move leads from one State to the next.
type Move struct {
	Kind  moveKind
	Actor int8
	Arg   int8
}

type moveKind int8

const (
	moveGo     moveKind = iota // the next request of an actor; Arg is the step
	moveRefuse                 // the same, but the server refuses it, or cannot be read
	moveLose                   // the same, but the answer gets lost
	moveReady                  // a controller makes object Arg ready
	moveStale                  // the watch shows old states; Arg is of which objects
	moveSweep                  // a controller removes the content of terminating object Arg
	moveAct                    // act Arg happens
)

// Violation returns which invariant the last Move broke; empty if none.
func (s *State) Violation() string { return s.violation }

func (s *State) clone() *State {
	next := &State{
		world: s.world.clone(), actors: slices.Clone(s.actors), budget: s.budget, active: s.active, key: s.key, halves: s.halves, unread: s.unread, late: s.late, truth: s.truth,
	}
	return next
}

func (s *State) violate(format string, args ...any) {
	if s.violation == "" {
		s.violation = fmt.Sprintf(format, args...)
	}
}

// note adds to the description of the move in a schedule.
func (s *State) note(format string, args ...any) {
	if s.description != "" {
		s.description += "; "
	}
	s.description += fmt.Sprintf(format, args...)
}

// disturbOthers notes that the other actors have an outdated view of the world.
func (s *State) disturbOthers(but int) {
	for i := range s.actors {
		if i != but && s.actors[i].at != idle {
			s.actors[i].disturbed = true
		}
	}
}

// lasts reports whether the content of a namespace could not be read, and has not yet
// been tried in this half of the timeout. That it cannot be read again is no new disturbance.
func (s *State) lasts() bool { return s.unread != 0 && s.unread&(1<<s.halves) == 0 }

// isQuiet reports whether no reconcile is under way.
func (s *State) isQuiet() bool {
	return !slices.ContainsFunc(s.actors, func(a actor) bool { return a.at != idle })
}

// now is the time. Only half a timeout lets it pass.
func (s *State) now() time.Time { return startOfTime.Add(time.Duration(s.halves) * timeout / 2) }

// cause is the cause of the reconcile.
func (a *actor) cause() plan.Cause {
	if a.snap.Deleting {
		return plan.Deleting
	}
	return plan.Applying
}

// reset ends the reconcile and drops its state.
func (a *actor) reset() { *a = actor{component: a.component, leader: a.leader} }

// Moves returns the possible next moves.
func (m *Model) Moves(s *State, moves []Move) []Move {
	for i := range s.actors {
		moves = m.actorMoves(s, i, moves)
	}
	for i, o := range s.world.objects {
		switch {
		case s.world.sweepable(o):
			moves = append(moves, Move{Kind: moveSweep, Arg: int8(i)})
		case !o.Ready && !o.Deleting && !slices.Contains(m.Slow, o.Key):
			moves = append(moves, Move{Kind: moveReady, Arg: int8(i)})
		}
	}
	for i, move := range m.moves {
		if s.budget == 0 && !m.Acts[i].isFree() {
			continue
		}
		first := int(s.budget) == m.Disturbances
		if (!first || m.allowed == nil || m.allowed(i)) && m.enabled(s, m.Acts[i]) {
			moves = append(moves, move)
		}
	}
	return moves
}

func (m *Model) actorMoves(s *State, i int, moves []Move) []Move {
	a := &s.actors[i]
	fails := m.Fails && s.budget > 0
	step := Move{Kind: moveGo, Actor: int8(i)}
	switch a.at {
	case idle:
		if a.leader == s.active && s.world.components[a.component] != nil {
			moves = append(moves, step)
		}
	case executing:
		for j := a.stageAt; j < len(a.plan.Steps) && a.plan.Steps[j].Stage == a.plan.Steps[a.stageAt].Stage; j++ {
			if a.executed&(1<<j) != 0 {
				continue
			}
			moves = append(moves, Move{Kind: moveGo, Actor: int8(i), Arg: int8(j)})
			if (m.Unread && s.budget > 0 || s.lasts()) && a.looksInside(j) {
				moves = append(moves, Move{Kind: moveRefuse, Actor: int8(i), Arg: int8(j)})
			}
			if fails {
				moves = append(moves, Move{Kind: moveRefuse, Actor: int8(i), Arg: int8(j)}, Move{Kind: moveLose, Actor: int8(i), Arg: int8(j)})
			}
		}
	case looking:
		if len(a.toRecall) > 0 {
			return s.recallMoves(i, moves)
		}
		moves = append(moves, step)
		if fails {
			moves = append(moves, Move{Kind: moveRefuse, Actor: int8(i)})
		}
	default:
		moves = append(moves, step)
	}
	return moves
}

// looksInside reports whether the next request of a step reads the content of a namespace.
func (a *actor) looksInside(i int) bool {
	step := a.plan.Steps[i]
	return isNamespace(step.Key) && step.Guard != plan.GuardNone && a.guarded&(1<<i) == 0
}

// Do makes a Move.
func (m *Model) Do(s *State, move Move) *State {
	next := s.clone()
	switch move.Kind {
	case moveReady:
		o := *next.world.objects[move.Arg]
		o.Ready = true
		next.world.put(o)
		next.note("%s becomes ready", o.Key)
		next.disturbOthers(-1)
	case moveSweep:
		o := next.world.objects[move.Arg]
		next.note("the server removes what is in %s", o.Key)
		next.world.sweep(o)
		next.disturbOthers(-1)
	case moveAct:
		if !m.Acts[move.Arg].isFree() {
			next.budget--
		}
		m.act(next, m.Acts[move.Arg])
		next.disturbOthers(-1)
	default:
		if (move.Kind == moveRefuse || move.Kind == moveLose) && !s.lasts() {
			next.budget--
		}
		m.advance(next, int(move.Actor), move)
	}
	return next
}

// truth is the past that the checks know. Its maps and slices are never changed in place.
type truth struct {
	// uids are the components as they are, or were last.
	uids []Holder
	// done are the executed purges, with their digests.
	done map[doneKey]string
	// once are the objects that were applied and must be left alone since.
	once map[doneKey]bool
	// finalizerRemoved are the components that lost their finalizer to another client.
	finalizerRemoved map[Holder]bool
}

// doneKey is an object of a component.
type doneKey struct {
	holder Holder
	key    plan.Key
}

// dropObject drops the truth about an object that is removed from the record.
func (t *truth) dropObject(k doneKey) {
	if _, known := t.done[k]; known {
		t.done = maps.Clone(t.done)
		delete(t.done, k)
	}
	if t.once[k] {
		t.once = maps.Clone(t.once)
		delete(t.once, k)
	}
}

// with returns a copy of a map with one more entry.
func with[K comparable, V any](m map[K]V, key K, value V) map[K]V {
	next := maps.Clone(m)
	if next == nil {
		next = map[K]V{}
	}
	next[key] = value
	return next
}
