// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/metrics"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/conclude"
	"github.com/corbel-run/corbel/pkg/component/internal/fleet"
	"github.com/corbel-run/corbel/pkg/component/internal/record"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/telemetry"
)

// steps are the parts of a reconcile that its phases have in common. They have their own memories of components.
type steps struct {
	*opener
	revisions *revision.Source
	records   *record.Keeper
	concluder *conclude.Concluder
	fleet     *fleet.Fleet
	memory    *memory
	telemetry *telemetry.Telemetry
	triggers  triggers
}

// triggers is trigger.Queue.
type triggers interface {
	StartReconcile(key client.ObjectKey)
	TakeCauses(key client.ObjectKey) (fast bool)
	Forget(key client.ObjectKey)
	IsUrgent(key client.ObjectKey) bool
	RequestFast(key client.ObjectKey, after time.Duration)
}

// remembered returns the memory of a component.
func (s *steps) remembered(obj Component) *remembered {
	return s.memory.entryOf(client.ObjectKeyFromObject(obj))
}

// annotationMistakes returns the mistakes in the annotations that the steps of an apply read.
func (s *steps) annotationMistakes(obj Component) error {
	_, rolloutErr := s.fleet.Annotation(obj)
	_, approvalErr := flagOf(obj, s.self.Annotation(vocabulary.AnnotationRequireApproval))
	_, emptyErr := flagOf(obj, s.self.Annotation(vocabulary.AnnotationAllowEmpty))
	return errors.Join(rolloutErr, approvalErr, emptyErr)
}

// runHooks calls the hooks of a point in their order, until one fails. An error
// that declares itself to be ignored (result.Generic) is logged.
func (s *steps) runHooks(ctx context.Context, point hookPoint, obj Component) error {
	if len(s.code.hooks[point]) == 0 {
		return nil
	}
	return s.telemetry.Part(ctx, metrics.PhaseHooks, func(ctx context.Context) error {
		return s.code.runHooks(ctx, point, obj)
	})
}

// applier applies the desired state of a component.
type applier struct {
	*steps
	planner *planner
	// entryGates are asked once the target is connected, startGates before a revision starts.
	entryGates, startGates []gate
}

// deleter deletes the dependent objects of a component.
type deleter struct {
	*steps
	cascades cascades
}

// planner makes plans.
type planner struct {
	*steps
	deletion *deleter
}
