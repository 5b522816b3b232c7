// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"github.com/corbel-run/corbel/internal/redact"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// corrected notes which of the steps undid what somebody else had done, and by
// whom it was, and remembers it: who is undone again and again will not give in.
func (r *Reconciler) corrected(c *call, results []plan.Result) {
	for _, result := range results {
		step := result.Step
		switch {
		case result.Err != nil || result.Blocked != "":
			continue
		case !step.CorrectsDrift():
			if step.Reason == plan.ReasonManifestChanged || step.Reason == plan.ReasonDeleting || step.Reason == plan.ReasonRedundant {
				r.contests.end(c.in.Owner.Ref, step.Key)
			}
			continue
		}
		contest, contested := r.contests.corrected(c.in.Owner.Ref, step.Key, *step.Drift, r.settings.now())
		switch {
		case contested:
			c.note(Note{Key: step.Key, Warning: plan.WarnConflict, Message: contest.String()})
		case step.Reason != plan.ReasonOwnershipLost: // of which there is a note already
			c.note(Note{Key: step.Key, Message: "drift repaired: " + step.Drift.String()})
		}
	}
}

func quietDeviations(secrets *redact.Secrets, deviations []Deviation) {
	for i := range deviations {
		d := &deviations[i].Drift
		d.Manager = secrets.Text(d.Manager)
		fields := make([]string, len(d.Fields))
		for j, field := range d.Fields {
			fields[j] = secrets.Text(field)
		}
		d.Fields = fields
	}
}
