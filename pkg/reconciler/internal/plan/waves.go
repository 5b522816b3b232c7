// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// applyWaves goes through the waves by apply-order, as far as readiness allows,
// and reports whether all of them are settled.
func (w *work) applyWaves(units []*unit) bool {
	defer w.resetVisits()
	waves := map[int][]*unit{}
	for _, u := range units {
		waves[int(u.item.ApplyOrder)] = append(waves[int(u.item.ApplyOrder)], u)
	}
	orders := slices.Sorted(maps.Keys(waves))
	due := purges{}
	for i, order := range orders {
		next := math.MaxInt
		if i+1 < len(orders) {
			next = orders[i+1]
		}
		due.add(waves[order])
		if w.applyWave(waves[order]) && w.purge(due.popDue(next)) {
			continue
		}
		wave, failed := " (apply-order "+strconv.Itoa(order)+")", anyBlockedByFailure(waves[order])
		message := "waits for " + blocking(waves[order], wave)
		for _, later := range orders[i+1:] {
			for _, u := range waves[later] {
				remedy := ""
				if u.desired.Hook != "" && strings.HasSuffix(message, wave) {
					remedy = fmt.Sprintf(", as a %s hook: set %s/%s: %q on the hook if that object needs it", u.desired.Hook, w.in.Name, v1alpha1.AnnotationApplyOrder, strconv.Itoa(order))
				}
				w.hold(u, message+remedy, failed)
			}
		}
		return false
	}
	return true
}

// applyWave applies one wave and reports whether all of it is settled. Its
// stages order the writes: an object that cannot be written holds back the
// stages after its own. From the late stage on, readiness is waited for, too.
func (w *work) applyWave(units []*unit) bool {
	stages := make([][]*unit, stageInstance+1)
	for _, u := range units {
		stages[applyStageOf(u)] = append(stages[applyStageOf(u)], u)
	}
	blocked, settled := false, true
	var before []*unit
	for stage, members := range stages {
		if blocked || stage >= stageLate && !settled {
			w.holdAll(members, "waits for "+blocking(before, ""), anyBlockedByFailure(units))
		} else {
			for _, u := range members {
				w.applyInOrder(u)
			}
		}
		for _, u := range members {
			blocked, settled = blocked || u.writeBlocked, settled && u.settled
		}
		before = append(before, members...)
	}
	return settled
}

// blocking names the object that other objects wait for: the first that is not settled, if possible
// one without a wait of its own. For a hook of a chart it names the kind of hook, and for other
// objects the wave: the author of a chart knows nothing of the waves of hooks.
func blocking(units []*unit, wave string) string {
	first := slices.IndexFunc(units, func(u *unit) bool { return !u.settled })
	if own := slices.IndexFunc(units, func(u *unit) bool { return !u.settled && !u.waitsForOthers }); own >= 0 {
		first = own
	}
	if first < 0 {
		return "other objects"
	}
	if u := units[first]; u.desired != nil && u.desired.Hook != "" {
		return u.desired.Hook + " hook " + u.key.String()
	}
	return units[first].key.String() + wave
}

// holdAll makes objects wait for other objects, unless nothing is to be done about them; failed is
// set if some of those wait because of a failure.
func (w *work) holdAll(units []*unit, message string, failed bool) {
	for _, u := range units {
		w.hold(u, message, failed)
	}
}

// hold lets one object wait, and reports whether it has to.
func (w *work) hold(u *unit, message string, failed bool) bool {
	switch {
	case u.isSharedType():
		w.awaitShared(u)
	case u.hookCompleted():
		u.settled = true
	case u.isFinished():
		u.markFinished()
	case w.settleExpired(u):
	case w.settleDeleted(u):
	case w.ignoreUnowned(u):
	case w.atRest(u):
		w.checkReadiness(u)
	case u.mendsWebhook:
		w.planDesired(u)
	default:
		u.blockedByFailure, u.waitsForOthers = failed, true
		w.notePending(u)
		w.wait(u, report.WaitOrder, message)
		return true
	}
	return false
}

// atRest reports whether the object is applied and needs no write.
func (w *work) atRest(u *unit) bool {
	if u.live.Existence != Present || !u.live.DeletionTimestamp.IsZero() || !u.isOurs() || u.item.Phase != vocabulary.PhaseApplied {
		return false
	}
	_, due := w.writeDue(u)
	return !due
}

// purges are the objects that are deleted at the end of a wave, by that wave.
type purges map[int][]*unit

func (p purges) add(units []*unit) {
	for _, u := range units {
		if at := u.desired.Policies.Order.Purge; at != nil {
			p[int(*at)] = append(p[int(*at)], u)
		}
	}
}

// popDue removes and returns the purges that are due before the next wave starts; a wave in between
// that has no objects ends at once.
func (p purges) popDue(next int) []*unit {
	var due []*unit
	for _, at := range slices.Sorted(maps.Keys(p)) {
		if at < next {
			due = append(due, p[at]...)
			delete(p, at)
		}
	}
	return due
}

// purge deletes objects that did their work, and reports whether all are gone.
func (w *work) purge(units []*unit) bool {
	gone := true
	for _, u := range units {
		if !u.live.known() {
			gone = false
			w.waitNotRead(u)
			continue
		}
		if !u.isOurs() {
			continue // it is done
		}
		gone = false
		u.settled = false
		w.deletePurged(u)
	}
	return gone
}

func (w *work) deletePurged(u *unit) {
	w.firstMoving = min(w.firstMoving, int(u.item.ApplyOrder))
	if u.item.Phase != vocabulary.PhaseCompleting {
		// Durable before the deletion: otherwise a crash in between would
		// look like a missing object, and the work would be done twice.
		u.item.Phase = vocabulary.PhaseCompleting
		w.recordFirst = true
	}
	s := u.step(VerbDelete, stagePurge, ReasonPurged)
	s.Desired = u.desired
	w.step(w.withGuard(s, u))
}
