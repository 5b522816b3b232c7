// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/events"
	"github.com/corbel-run/corbel/internal/metrics"
	"github.com/corbel-run/corbel/internal/trace"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
)

// Options configure a Telemetry.
type Options struct {
	// Controller is the name of the controller in metrics and spans.
	Controller string
	Self       *identity.Operator
	Tracer     trace.Tracer
	// Recorder sends events. Nil sends none.
	Recorder events.Recorder
	Now      func() time.Time
}

// Telemetry reports the work of the reconciler of one controller.
type Telemetry struct {
	// Recorder sends events. It may be nil.
	Recorder events.Recorder

	controller string
	self       *identity.Operator
	tracer     trace.Tracer
	population *metrics.Population[client.ObjectKey]
	now        func() time.Time
}

// New returns a Telemetry.
func New(options Options) *Telemetry {
	return &Telemetry{
		Recorder:   options.Recorder,
		controller: options.Controller,
		self:       options.Self,
		tracer:     options.Tracer,
		population: metrics.NewPopulation[client.ObjectKey](options.Controller),
		now:        options.Now,
	}
}

// outcome is the result of a reconcile. It is filled in during the reconcile.
type outcome struct {
	result metrics.Result
	// logged is the text of the error that the log has already.
	logged string
}

type outcomeKey struct{}

// NoteResult notes the result of the reconcile of the context.
func NoteResult(ctx context.Context, result metrics.Result) {
	if current, ok := ctx.Value(outcomeKey{}).(*outcome); ok {
		current.result = result
	}
}

// Reconcile runs a reconcile of a component in a span, and counts it.
func (t *Telemetry) Reconcile(ctx context.Context, key client.ObjectKey, run func(ctx context.Context) (ctrl.Result, error)) (ctrl.Result, error) {
	start := time.Now()
	current := &outcome{}
	ctx = context.WithValue(ctx, outcomeKey{}, current)
	ctx = metrics.WithController(confidential.Start(ctx, false), t.controller)
	ctx, span := t.tracer.Start(ctx, "corbel.reconcile")
	span.Set("corbel.controller", t.controller)
	span.Set("corbel.namespace", key.Namespace)
	span.Set("corbel.name", key.Name)

	result, err := run(ctx)
	switch {
	case current.result != "":
	case err != nil:
		current.result = metrics.ResultError
	default:
		current.result = metrics.ResultConflict
	}
	span.Set("corbel.result", string(current.result))
	span.End(err)
	metrics.Reconciled(t.controller, current.result, time.Since(start))
	if err != nil && err.Error() == current.logged {
		err = &loggedError{err}
	}
	return result, err
}

// Part runs a part of a reconcile, in a span and with its duration measured.
func (t *Telemetry) Part(ctx context.Context, phase metrics.Phase, run func(ctx context.Context) error) error {
	start := time.Now()
	ctx, span := t.tracer.Start(ctx, "corbel."+string(phase))
	err := run(ctx)
	span.End(err)
	metrics.ObservePhase(t.controller, phase, time.Since(start))
	return err
}

// CountHeldBack counts a rendering that is held back.
func (t *Telemetry) CountHeldBack() { metrics.RenderHeldBack(t.controller) }

// Summary is a state of a component with its reason.
type Summary struct {
	State  v1alpha1.State
	Reason string
}

// Report reports the verdict about a reconcile, and the steps for the component if the verdict is a
// transition, the component is ready, or a revision waits for its approval.
func (t *Telemetry) Report(ctx context.Context, obj identity.Component, a *Activity, before Summary, v verdict.Verdict, dependents map[string]int) {
	t.logVerdict(ctx, obj, a, before.Reason, v)
	t.population.Set(client.ObjectKeyFromObject(obj), metrics.Component{State: string(v.State), Reason: v.Reason, Dependents: dependents})
	NoteResult(ctx, resultOf(v))
	starts := a.log.starts
	a.log.starts = false
	switch {
	case v.State == v1alpha1.StateReady:
		t.ReportActivity(ctx, obj, a, Apply)
		t.logTransition(ctx, obj, a, a.completed(before))
	case v.Reason == vocabulary.ReasonApprovalRequired:
		t.ReportActivity(ctx, obj, a, Apply) // the revision before is repaired, which is no part of the approved revision
	case v.State == before.State && v.Reason == before.Reason && !starts:
		// No transition, so no event: the steps are reported at the next one.
	case !obj.GetDeletionTimestamp().IsZero():
		t.ReportActivity(ctx, obj, a, Delete)
	default:
		t.ReportActivity(ctx, obj, a, Apply)
	}
}

func resultOf(v verdict.Verdict) metrics.Result {
	switch {
	case v.State == v1alpha1.StateSuspended:
		return metrics.ResultSuspended
	case v.State == v1alpha1.StateReady:
		return metrics.ResultReady
	case v.State == v1alpha1.StateProcessing:
		return metrics.ResultProcessing
	case v.State == v1alpha1.StatePending, v.State == v1alpha1.StateDeletionPending:
		return metrics.ResultPending
	case v.State == v1alpha1.StateDeleting && !v.Failed:
		return metrics.ResultDeleting
	default:
		return metrics.ResultError
	}
}

// ForgetComponent drops the state of a component that does not exist any more.
func (t *Telemetry) ForgetComponent(ctx context.Context, key client.ObjectKey) {
	NoteResult(ctx, metrics.ResultGone)
	t.population.Remove(key)
}

// Warn sends an event of type Warning about a component.
func (t *Telemetry) Warn(obj client.Object, reason string, action Action, note string) {
	events.Send(t.Recorder, obj, 1, events.Event{Type: corev1.EventTypeWarning, Reason: reason, Action: string(action), Note: note})
}

// CountRequests returns a copy of an HTTP client that counts its requests.
func CountRequests(plain *http.Client) *http.Client {
	clone := http.Client{}
	if plain != nil {
		clone = *plain
	}
	clone.Transport = metrics.CountRequests(clone.Transport)
	return &clone
}
