// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// The bounds of the engine's run loop.
const (
	maxLooks  = 3
	maxWrites = 4
)

// advance makes the next request of an actor.
func (m *Model) advance(s *State, i int, move Move) {
	a := &s.actors[i]
	s.description = string('A'+rune(a.component)) + string('1'+rune(a.leader)) + ": "
	switch a.at {
	case idle:
		m.readComponent(s, a)
	case addingFinalizer:
		m.addFinalizer(s, i)
	case lookingForBlockers:
		m.lookForBlockers(s, a)
	case looking:
		if len(a.toRecall) > 0 {
			m.recallAll(s, a, uint8(move.Arg))
			return
		}
		m.look(s, a, move.Kind == moveRefuse)
	case recording:
		s.note("record %d objects", len(a.plan.Inventory))
		if !m.commit(s, i, a.plan.Inventory) {
			a.reset()
			return
		}
		m.recorded(s, a)
	case executing:
		m.execute(s, i, move)
	case finishing:
		s.note("save the record of %d objects, and end the reconcile", len(a.recorded))
		m.commit(s, i, a.recorded)
		a.reset()
	case removingFinalizer:
		m.removeFinalizer(s, i)
	}
}

// readComponent reads the component.
func (m *Model) readComponent(s *State, a *actor) {
	c := s.world.components[a.component]
	s.note("read the component")
	if c.Deleting && !c.HasFinalizer {
		return
	}
	a.snap, a.recorded = c, m.openInventory(s, a, c)
	a.live, a.failed = map[plan.Key]plan.Observation{}, map[plan.Key]plan.Failure{}
	a.assumesAbsence = m.assumesAbsence(a)
	switch {
	case c.Deleting:
		a.at = lookingForBlockers
	case !c.HasFinalizer:
		a.at = addingFinalizer
	default:
		m.lookAt(s, a, m.keysOf(a), nil)
	}
}

// lookForBlockers lists the instances of the component's types before anything is deleted.
func (m *Model) lookForBlockers(s *State, a *actor) {
	s.note("look for instances of others")
	own := map[plan.Key]bool{}
	for _, item := range a.recorded {
		own[plan.KeyOf(item)] = true
	}
	for _, item := range a.recorded {
		if policy.OrphansOnDelete(item.DeletePolicy) || item.UID == "" || item.Phase == vocabulary.PhaseReleased {
			continue
		}
		for _, o := range s.world.objects {
			instance := slices.Contains(item.Defines, v1alpha1.TypeInfo{Group: o.Key.Group, Kind: o.Key.Kind})
			if instance && !own[o.Key] && !slices.Contains(item.Kept, uidOf(o.UID)) {
				s.note("blocked by %s", o.Key)
				a.reset()
				return
			}
		}
	}
	m.lookAt(s, a, m.keysOf(a), nil)
}

// keysOf are the objects that the plans of a reconcile are about.
func (m *Model) keysOf(a *actor) []plan.Key {
	var keys []plan.Key
	for _, d := range m.desiredObjects(a) {
		keys = append(keys, d.Key)
	}
	for _, item := range a.recorded {
		if key := plan.KeyOf(item); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (m *Model) desiredObjects(a *actor) []plan.Desired {
	if a.snap.Deleting {
		return nil
	}
	return m.keyed[a.key][a.snap.UID][a.snap.Version]
}

// lookAt looks at objects, and plans then: it reads each object to ask for. Objects to recall are
// read only if not enough is known of them, as are objects of a type that was not served before.
func (m *Model) lookAt(s *State, a *actor, recall, ask []plan.Key) {
	for key, live := range a.live {
		if live.Existence == plan.Unknown && live.NotServed && !slices.Contains(ask, key) {
			recall = append(recall, key)
		}
	}
	slices.SortFunc(recall, plan.Key.Compare)
	slices.SortFunc(ask, plan.Key.Compare)
	a.at, a.toRecall, a.toRead = looking, recall, ask
	m.afterLook(s, a)
}

func (m *Model) look(s *State, a *actor, fails bool) {
	key := a.toRead[0]
	a.toRead = a.toRead[1:]
	live := sealed(ownerBy(a.snap.UID), a.key, s.world.observe(key, m.desiredNow(a, key) != nil))
	if live.Existence == plan.Present {
		live.Differs = m.differs(a, s.world.get(key))
	}
	if fails {
		live = plan.Observation{Message: "the server is busy"}
	}
	if live.Existence == plan.Present {
		s.learn(a.leader, key)
	}
	s.read = key
	s.note("look at %s: %s", key, describe(live))
	a.live = cloned(a.live)
	a.live[key] = live
	m.afterLook(s, a)
}

func cloned(live map[plan.Key]plan.Observation) map[plan.Key]plan.Observation {
	next := make(map[plan.Key]plan.Observation, len(live)+1)
	maps.Copy(next, live)
	return next
}

// afterLook plans if everything was looked at, the namespaces of new objects included.
func (m *Model) afterLook(s *State, a *actor) {
	switch {
	case len(a.toRecall) > 0 && !m.Watched:
		m.recallAll(s, a, 0) // it takes no time
		return
	case len(a.toRecall)+len(a.toRead) > 0:
		return
	}
	if a.cause() == plan.Applying {
		if a.toRecall = plan.Namespaces(m.desiredObjects(a), a.live); len(a.toRecall) > 0 {
			m.afterLook(s, a)
			return
		}
	}
	m.plan(s, a)
}

func (m *Model) input(s *State, a *actor) plan.Input {
	return plan.Input{
		Cause: a.cause(), Name: reconcilerName, Owner: ownerBy(a.snap.UID), Desired: m.desiredObjects(a), Recorded: a.recorded,
		Live: a.live, Failed: a.failed, DryRunAccepted: a.accepted, MissingNamespaces: m.Missing, Now: s.now(), Timeout: timeout,
	}
}

// plan computes the next plan. It is no request, and so no move of its own.
func (m *Model) plan(s *State, a *actor) {
	in := m.input(s, a)
	next, err := plan.Next(in)
	if err != nil {
		s.violate("the input of a plan contradicts itself: %v", err)
	}
	m.checkPlan(s, in, next)
	if m.planned != nil {
		m.planned(s, in, next)
	}
	a.plan = &next
	a.stageAt, a.executed, a.guarded, a.results = 0, 0, 0, nil
	if next.MustRecord {
		a.at = recording
		return
	}
	m.recorded(s, a)
}

// recorded goes on when the record of the plan is durable, or need not be.
func (m *Model) recorded(s *State, a *actor) {
	if len(a.plan.Steps) > 0 {
		a.at = executing
		return
	}
	a.recorded = a.plan.Inventory
	m.endReconcile(s, a)
}

// endReconcile decides how the reconcile ends.
func (m *Model) endReconcile(s *State, a *actor) {
	a.at, s.waiting = finishing, a.plan.Waiting
	if a.cause() == plan.Deleting && a.plan.Done() && !a.unreachable {
		a.at = removingFinalizer
	}
}

// fold adds the results of the steps to the input, and plans again.
func (m *Model) fold(s *State, a *actor) {
	a.live, a.failed = maps.Clone(a.live), maps.Clone(a.failed)
	a.reads, a.writes = maps.Clone(a.reads), maps.Clone(a.writes)
	blind := map[plan.Key]bool{}
	for _, r := range a.results {
		blind[r.Step.Key] = a.live[r.Step.Key].Existence == plan.NotFetched
	}
	a.recorded = plan.Fold(a.plan.Inventory, a.live, a.results, metav1.NewTime(s.now()))
	var again []plan.Key
	for _, r := range a.results {
		key := r.Step.Key
		switch {
		case r.Blocked != "":
			a.failed[key] = plan.Failure{Blocked: true, Message: r.Blocked, BlockingTypes: r.BlockingTypes}
		case r.Err == nil && r.Step.Verb == plan.VerbDryRun:
			a.accepted = maps.Clone(a.accepted)
			if a.accepted == nil {
				a.accepted = map[plan.Key]bool{}
			}
			a.accepted[key] = true
			continue
		case r.Err == nil:
			delete(a.failed, key)
			s.carried = append(s.carried, r.Step)
			if a.writes = count(a.writes, key); a.writes[key] >= maxWrites {
				a.failed[key] = plan.Failure{Message: "is written again and again"}
			}
			continue
		case errors.Is(r.Err, errConflict) && a.reads[key] < maxLooks:
			a.reads = count(a.reads, key)
		case blind[key] && !errors.Is(r.Err, errLost):
			// It was not read yet.
		case isNamespaceGone(r.Err) && a.reads[key] < maxLooks:
			a.reads = count(a.reads, key)
			if !slices.Contains(again, namespaceOf(key)) {
				again = append(again, namespaceOf(key))
			}
		default:
			a.failed[key] = plan.Failure{Immutable: errors.Is(r.Err, errImmutable), Message: r.Err.Error()}
		}
		again = append(again, key)
	}
	a.results = nil
	if a.unreachable {
		m.endReconcile(s, a)
		return
	}
	m.lookAt(s, a, nil, again)
}

func isNamespaceGone(err error) bool {
	return errors.Is(err, errNoNamespace) || errors.Is(err, errTerminating)
}

func count(counts map[plan.Key]int, key plan.Key) map[plan.Key]int {
	if counts == nil {
		counts = map[plan.Key]int{}
	}
	counts[key]++
	return counts
}
