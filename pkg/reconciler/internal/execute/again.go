// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"errors"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// maxSends bounds how often a deletion or a release is sent in one step,
// because something else about the object moved in between. An object that
// changes faster than that is left to the next plan.
const maxSends = 5

// whileMeant executes a step that does not depend on the content of the object,
// only on whose it is. If the object has changed since the plan saw it, it is
// looked at again, and the step is executed again as long as it is still meant
// for it, each time with the resourceVersion of the last look: the server cannot
// delete what changed hands between that look and the request.
func (e *Executor) whileMeant(ctx context.Context, step plan.Step, execute func(context.Context, plan.Step) plan.Result) plan.Result {
	if step.UID == "" || step.ResourceVersion == "" {
		return failed(step, errors.New("there is no precondition"))
	}
	for sends := 1; ; sends++ {
		result := execute(ctx, step)
		if !IsConflict(result.Err) || sends == maxSends {
			return result
		}
		live := e.look(ctx, step)
		switch {
		case live.Existence == plan.Absent, step.Verb == plan.VerbDelete && live.UID == step.UID && !live.Deleting.IsZero():
			return plan.Result{Step: step, Observation: live}
		case !step.StillMeant(live):
			return result
		}
		step.ResourceVersion = live.ResourceVersion
	}
}

// look observes the object of a step.
func (e *Executor) look(ctx context.Context, step plan.Step) plan.Observation {
	// The only error is the end of the context; then nothing is known.
	observed, _ := e.observer.Observe(ctx, []observe.Request{{Owner: step.Owner, Key: step.Key, Version: step.Version, Desired: step.Desired, Ask: true}})
	return observed[step.Key]
}
