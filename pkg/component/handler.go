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
	// sessions reads components and writes their status.
	sessions *session.Sessions[Component]

	*opener

	revisions *revision.Source
	records   *record.Keeper

	conclude *conclude.Concluder
	memory   *memory
	cascades cascades

	previews *previews // nil if it answers none

	fleet *fleet.Fleet

	telemetry *telemetry.Telemetry
	triggers  triggers
}

// triggers is trigger.Queue.
type triggers interface {
	StartReconcile(key client.ObjectKey) (fast bool)
	IsUrgent(key client.ObjectKey) bool
	RequestFast(key client.ObjectKey, after time.Duration)
}

// remembered is what is remembered about the component.
func (h *handler) remembered(obj Component) *remembered {
	return h.memory.entryOf(client.ObjectKeyFromObject(obj))
}
