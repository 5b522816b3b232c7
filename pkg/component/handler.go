// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"github.com/corbel-run/corbel/internal/session"
)

// handler reconciles components. It is immutable; what it remembers about components from
// one reconcile to the next only saves requests and words.
type handler struct {
	*steps

	// sessions reads components and writes their status.
	sessions *session.Sessions[Component]
	applier  *applier
	deletion *deleter
	planner  *planner
	previews *previews // nil if it answers none
}

// newHandler returns a handler of components.
func newHandler(s *steps) *handler {
	deletion := &deleter{steps: s}
	planner := &planner{steps: s, deletion: deletion}
	applier := &applier{steps: s, planner: planner}
	// The gates are asked in this order. A component that is suspended, or that another operator has claimed, does not come to them:
	// see internal/session.
	applier.entry = []gate{applier.referencesLoaded}
	applier.start = []gate{applier.approvalGiven, applier.turnCome}
	return &handler{steps: s, applier: applier, deletion: deletion, planner: planner}
}
