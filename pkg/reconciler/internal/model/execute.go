// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// execute makes the next request of a step. A step with a guard has two: the
// list that the guard looks at, and the deletion.
func (m *Model) execute(s *State, i int, move Move) {
	a, bit := &s.actors[i], uint32(1)<<move.Arg
	s.sent = true
	step := a.plan.Steps[move.Arg]
	s.note("%s %s: %s", step.Verb, step.Key, step.Reason)
	result, done := plan.Result{Step: step}, true
	switch {
	case move.Kind == moveRefuse && a.looksInside(int(move.Arg)):
		result = m.guardUnread(s, a, step)
	case move.Kind == moveRefuse:
		s.note("refused")
		result.Err = errRefused
	case step.TakesOwnership() && a.leader != s.active && !m.NoConfirmation:
		// The server cannot refuse them to a deposed leader; a leader that is not confirmed sends none.
		s.note("not sent: the lease is gone")
		result.Err = errLost
		a.unreachable = true
	case step.Guard != plan.GuardNone && a.guarded&bit == 0:
		result, done = m.guard(s, a, step)
		a.guarded |= bit
	default:
		result = m.send(s, i, m.resent(s, step))
		result.Step = step
		if move.Kind == moveLose {
			s.note("the answer gets lost")
			result = plan.Result{Step: step, Err: errLost}
			a.unreachable = true
		}
	}
	if result.Err != nil {
		s.note("%v", result.Err)
		result.Observation = plan.Observation{Message: result.Err.Error()}
	}
	if !done {
		return
	}
	if result.Err == nil && result.Blocked == "" && step.Verb != plan.VerbDryRun {
		s.learn(a.leader, step.Key)
	}
	a.executed |= bit
	a.results = append(a.results[:len(a.results):len(a.results)], result)
	m.endStage(s, a)
}

// endStage goes on with the next stage, or plans again.
func (m *Model) endStage(s *State, a *actor) {
	steps := a.plan.Steps
	end := a.stageAt
	for end < len(steps) && steps[end].Stage == steps[a.stageAt].Stage {
		if a.executed&(1<<end) == 0 {
			return
		}
		end++
	}
	failed := slices.ContainsFunc(a.results, func(r plan.Result) bool { return r.Err != nil || r.Blocked != "" })
	if a.stageAt = end; failed || end == len(steps) {
		// The order in which the steps were executed makes no difference.
		slices.SortFunc(a.results, func(x, y plan.Result) int { return x.Step.Key.Compare(y.Step.Key) })
		m.fold(s, a)
	}
}

// resent is the step as it is sent in the end. A removal is sent once more if something
// about the object has changed, but not its owner.
func (m *Model) resent(s *State, step plan.Step) plan.Step {
	o := s.world.get(step.Key)
	if step.Verb != plan.VerbDelete && step.Verb != plan.VerbOrphan || step.Guard != plan.GuardNone || o == nil {
		return step
	}
	if live := o.observation(false); step.StillApplies(live) {
		step.ResourceVersion = live.ResourceVersion
	}
	return step
}

// guard looks whether a deletion may follow.
func (m *Model) guard(s *State, a *actor, step plan.Step) (plan.Result, bool) {
	result := plan.Result{Step: step}
	o := s.world.get(step.Key)
	if o == nil {
		return result, false
	}
	inside := s.world.inside(o)
	obstacle := slices.IndexFunc(inside, func(x *Object) bool { return !step.Guard.AllowsOrphan() || !isKept(step.ItemAfter, o, x) })
	switch {
	case len(inside) == 0:
		s.note("it is empty")
		return result, false
	case obstacle < 0:
		s.note("it is in use, so it is orphaned")
		return m.orphan(s, a, step, result), true
	default:
		s.note("blocked by %s", inside[obstacle].Key)
		result.Blocked = fmt.Sprintf("%s is there", inside[obstacle].Key)
		return result, true
	}
}

// guardUnread is the look of a guard at a namespace with unreadable content.
func (m *Model) guardUnread(s *State, a *actor, step plan.Step) plan.Result {
	result := plan.Result{Step: step, ContentUnknown: true}
	s.unread |= 1 << s.halves
	if step.Guard != plan.GuardKnownEmptyElseOrphan {
		s.note("its content cannot be read")
		result.Blocked = "its content cannot be read"
		return result
	}
	s.note("its content cannot be read, so it is orphaned")
	if s.unread != 1<<0|1<<1|1<<2 {
		s.violate("S4 inventory is complete: %s is orphaned although its reads did not fail for the whole timeout", step.Key)
	}
	return m.orphan(s, a, step, result)
}

// orphan orphans the object of a deletion instead.
func (m *Model) orphan(s *State, a *actor, step plan.Step, result plan.Result) plan.Result {
	var o *Object
	if o, result.Err = s.world.checkPreconditions(step, true); result.Err == nil {
		strip := step
		strip.Verb = plan.VerbOrphan
		m.checkRemoval(s, a, strip, o)
		s.world.strip(o)
		s.writes++
		result.Orphaned, result.Observation = true, sealed(ownerBy(a.snap.UID), a.key, s.world.get(step.Key).observation(false))
	}
	return result
}

// isKept reports whether the record of a holder tells that an object in it was left behind. The
// record of a namespace does not name the objects.
func isKept(item v1alpha1.InventoryItem, holder, x *Object) bool {
	return isNamespace(holder.Key) || slices.Contains(item.Kept, uidOf(x.UID))
}

// send makes the request of a step.
func (m *Model) send(s *State, i int, step plan.Step) plan.Result {
	a, w := &s.actors[i], &s.world
	result := plan.Result{Step: step}
	me := a.snap.UID
	version := w.last
	switch step.Verb {
	case plan.VerbCreate:
		m.checkCreate(s, a, step)
		there := w.get(step.Key) != nil
		if result.Err = w.create(step, me); result.Err == nil && there {
			s.violate("P6 staleness: create %s overwrites what is there", step.Key)
		}
	case plan.VerbReplace, plan.VerbMerge, plan.VerbOverride:
		var o *Object
		if o, result.Err = w.checkPreconditions(step, true); result.Err == nil {
			m.checkWrite(s, a, step, o)
			if as := sent(*o, step, me); step.SkipIfUnchanged && o.Value == as.Value && o.OwnerID == as.OwnerID && o.Ref == as.Ref {
				if o.Made != unkeyed(step.Desired.Digest) {
					s.violate("P5 a crash changes nothing: %s counts as made of %s, and was made of %s", step.Key, step.Desired.Digest, o.Made)
				}
				break
			}
			result.Err = w.update(o, step, me, slices.Contains(m.Fixed, step.Key))
		}
	case plan.VerbDryRun:
		result.Err = w.dryRun(step)
		return result
	case plan.VerbOrphan:
		if w.get(step.Key) == nil {
			result.Observation.Existence = plan.Absent
			return result
		}
		var o *Object
		if o, result.Err = w.checkPreconditions(step, true); result.Err == nil {
			m.checkRemoval(s, a, step, o)
			w.strip(o)
		}
	case plan.VerbDelete:
		if w.get(step.Key) == nil {
			result.Observation.Existence = plan.Absent
			return result
		}
		var o *Object
		if o, result.Err = w.checkPreconditions(step, true); result.Err == nil {
			m.checkRemoval(s, a, step, o)
			w.removed(o)
		}
	}
	if result.Err == nil {
		s.writes++
		m.remember(s, a, step)
		result.Observation = sealed(ownerBy(me), a.key, w.observe(step.Key, step.Desired != nil))
	}
	if w.last != version {
		s.disturbOthers(i)
	}
	return result
}

// remember keeps the truth about a step.
func (m *Model) remember(s *State, a *actor, step plan.Step) {
	k := doneKey{a.snap.UID, step.Key}
	if step.Reason == plan.ReasonPurged {
		s.truth.done = with(s.truth.done, k, unkeyed(step.ItemAfter.Digest))
	}
}
