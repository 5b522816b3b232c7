// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/rights"
)

// preflight finds out which rights are missing: before the first write of a call, and
// once more after the server has forbidden something. At rest nothing is asked, nor about
// what is known to be allowed. It only reports.
func (r *Reconciler) preflight(ctx context.Context, c *call, next plan.Plan) {
	refused := len(c.refused) > 0 || slices.ContainsFunc(next.Waiting, func(w plan.Wait) bool { return w.Reason == plan.WaitForbidden })
	switch {
	case refused && !c.reviewedAgain:
	case len(next.Steps) > 0 && !c.reviewed:
	default:
		return
	}
	c.reviewed, c.reviewedAgain = true, refused
	needs := rights.Of(c.in.Input, rights.Context{Known: r.target.Types().Known, Watched: r.settings.changed != nil, Refused: c.refused})
	missing, err := r.rights.Missing(ctx, needs, refused)
	if err != nil {
		log.FromContext(ctx).V(1).Info("cannot review all rights of the identity", "error", err.Error())
	}
	c.missing = missing
}
