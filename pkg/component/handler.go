// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/pkg/component/internal/conclude"
	"github.com/corbel-run/corbel/pkg/component/internal/fleet"
	"github.com/corbel-run/corbel/pkg/component/internal/record"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/telemetry"
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

// steps are the parts of a reconcile that its phases have in common. Each has its own memory of components.
type steps struct {
	*opener
	revisions *revision.Source
	records   *record.Keeper
	conclude  *conclude.Concluder
	fleet     *fleet.Fleet
	memory    *memory
	telemetry *telemetry.Telemetry
	triggers  triggers
}

// newHandler returns a handler of components.
func newHandler(s *steps) *handler {
	deletion := &deleter{steps: s}
	planner := &planner{steps: s, deletion: deletion}
	return &handler{steps: s, applier: &applier{steps: s, planner: planner}, deletion: deletion, planner: planner}
}

// triggers is trigger.Queue.
type triggers interface {
	StartReconcile(key client.ObjectKey) (fast bool)
	IsUrgent(key client.ObjectKey) bool
	RequestFast(key client.ObjectKey, after time.Duration)
}

// remembered is what is remembered about the component.
func (s *steps) remembered(obj Component) *remembered {
	return s.memory.entryOf(client.ObjectKeyFromObject(obj))
}
