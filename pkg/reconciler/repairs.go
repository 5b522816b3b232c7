// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"time"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// repairLimits are for objects that are repaired again and again.
var repairLimits = backoff.Limits{Burst: 3, Base: 2 * time.Second, Limit: 5 * time.Minute, Quiet: 5 * time.Minute}

// repairHistory remembers which objects were repaired, so that two clients that do not
// agree about an object do not write it forever as fast as they can. It is safe for
// concurrent use.
type repairHistory struct {
	repairs *backoff.Throttle[plan.OwnerRef, plan.Key, report.Drift]
}

func newRepairHistory() *repairHistory {
	return &repairHistory{backoff.NewThrottle[plan.OwnerRef, plan.Key, report.Drift](repairLimits)}
}

// add counts a repair of the object, and reports whether it is in conflict.
func (h *repairHistory) add(owner plan.OwnerRef, key plan.Key, drift report.Drift, now time.Time) (plan.Conflict, bool) {
	if last := h.repairs.Get(owner, key, now).Value; drift.Manager == "" && !drift.Missing && last.Manager != "" {
		// A removed field has no manager. The manager that was seen before is a better guess than
		// none.
		drift.Manager, drift.At = last.Manager, last.At
	}
	repairs := h.repairs.Count(owner, key, drift, now)
	return plan.Conflict{Until: repairs.Until, Last: drift}, repairs.Count >= repairLimits.Burst
}

// conflicts returns the objects of the owner that are in conflict.
func (h *repairHistory) conflicts(owner plan.OwnerRef, now time.Time) map[plan.Key]plan.Conflict {
	conflicts := map[plan.Key]plan.Conflict{}
	for key, repairs := range h.repairs.Paused(owner, now) {
		conflicts[key] = plan.Conflict{Until: repairs.Until, Last: repairs.Value}
	}
	return conflicts
}

// noteRepairs notes which of the steps repaired drift, and which client had caused it, and
// adds them to the history. A change of the manifest ends a conflict.
func (r *Reconciler) noteRepairs(c *call, results []plan.Result) {
	for _, result := range results {
		step := result.Step
		switch {
		case result.Err != nil || result.Blocked != "":
			continue
		case !step.CorrectsDrift():
			if step.Reason == plan.ReasonManifestChanged || step.Reason == plan.ReasonDeleting || step.Reason == plan.ReasonRedundant {
				r.history.repairs.Reset(c.in.Owner.Ref, step.Key)
			}
			continue
		}
		repairs, conflicting := r.history.add(c.in.Owner.Ref, step.Key, *step.Drift, r.settings.Now())
		switch {
		case conflicting:
			c.addNote(plan.Note{Key: step.Key, Reason: report.WarnConflict, Warning: true, Message: repairs.String()})
		case step.Reason != plan.ReasonOwnershipLost && step.Reason != plan.ReasonOwnershipShared: // of which there is a note already
			c.addNote(plan.Note{Key: step.Key, Reason: report.NoteDriftRepaired, Message: "drift repaired: " + step.Drift.String()})
		}
	}
}
