// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package telemetry reports the work of a reconciler: the transitions of components in events and lines of the log, and the work in
// spans and metrics.
package telemetry

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

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
	Options
	population *metrics.Population[client.ObjectKey]
}

// New returns a Telemetry.
func New(o Options) *Telemetry {
	return &Telemetry{Options: o, population: metrics.NewPopulation[client.ObjectKey](o.Controller)}
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
	ctx = metrics.WithController(confidential.Start(ctx, false), t.Controller)
	ctx, span := t.Tracer.Start(ctx, "corbel.reconcile")
	span.Set("corbel.controller", t.Controller)
	span.Set("corbel.namespace", key.Namespace)
	span.Set("corbel.name", key.Name)

	result, err := run(ctx)
	if current.result == "" && err != nil {
		current.result = metrics.ResultError
	}
	current.result = cmp.Or(current.result, metrics.ResultConflict)
	span.Set("corbel.result", string(current.result))
	span.End(err)
	metrics.Reconciled(t.Controller, current.result, time.Since(start))
	if err != nil && err.Error() == current.logged {
		err = &loggedError{err}
	}
	return result, err
}

// Part runs a part of a reconcile, in a span and with its duration measured.
func (t *Telemetry) Part(ctx context.Context, phase metrics.Phase, run func(ctx context.Context) error) error {
	start := time.Now()
	ctx, span := t.Tracer.Start(ctx, "corbel."+string(phase))
	err := run(ctx)
	span.End(err)
	metrics.ObservePhase(t.Controller, phase, time.Since(start))
	return err
}

// CountHeldBack counts a rendering that is held back.
func (t *Telemetry) CountHeldBack() { metrics.RenderHeldBack(t.Controller) }

// Report reports the verdict about a reconcile, and the steps for the component if the verdict is a transition, the component is ready, or
// the next revision is held back. Of the verdict before, only state and reason count. It reports whether the reason is
// Processing and an event lists the writes: then the transition needs no event of its own.
func (t *Telemetry) Report(ctx context.Context, obj identity.Component, a *Activity, before, v verdict.Verdict, dependents map[string]int) (announced bool) {
	t.logVerdict(ctx, obj, a, before.Reason, v)
	t.population.Set(client.ObjectKeyFromObject(obj), metrics.Component{State: string(v.State), Reason: v.Reason, Dependents: dependents})
	NoteResult(ctx, resultOf(v))
	changed := v.State != before.State || v.Reason != before.Reason || a.log.starts
	a.log.starts = false
	ready := v.State == v1alpha1.StateReady
	// While a revision is held back, the revision before is repaired, which is no part of the next one.
	if changed || ready || v.Held {
		action := Apply
		if !obj.GetDeletionTimestamp().IsZero() {
			action = Delete
		}
		announced = t.ReportActivity(ctx, obj, a, action) && v.Reason == vocabulary.ReasonProcessing
	}
	if transition := a.completed(before); ready && transition != "" {
		t.logTransition(ctx, obj, a, transition)
	}
	return announced
}

// results are the results of reconciles by the states of components; for other states it is ResultError.
var results = map[v1alpha1.State]metrics.Result{
	v1alpha1.StateSuspended: metrics.ResultSuspended, v1alpha1.StateReady: metrics.ResultReady, v1alpha1.StateProcessing: metrics.ResultProcessing,
	v1alpha1.StatePending: metrics.ResultPending, v1alpha1.StateDeletionPending: metrics.ResultPending, v1alpha1.StateDeleting: metrics.ResultDeleting,
}

func resultOf(v verdict.Verdict) metrics.Result {
	if v.Failed && v.State == v1alpha1.StateDeleting {
		return metrics.ResultError
	}
	return cmp.Or(results[v.State], metrics.ResultError)
}

// ForgetComponent drops the state of a component that does not exist any more.
func (t *Telemetry) ForgetComponent(ctx context.Context, key client.ObjectKey) {
	NoteResult(ctx, metrics.ResultGone)
	t.population.Remove(key)
}

// Warn sends an event of type Warning about a component.
func (t *Telemetry) Warn(obj client.Object, reason, action, note string) {
	events.Send(t.Recorder, obj, 1, events.Event{Type: corev1.EventTypeWarning, Reason: reason, Action: action, Note: note})
}

// CountRequests returns a copy of an HTTP client that counts its requests.
func CountRequests(plain *http.Client) *http.Client {
	clone := *cmp.Or(plain, &http.Client{})
	clone.Transport = metrics.CountRequests(clone.Transport)
	return &clone
}

// loggedError is an error that the log has already.
type loggedError struct{ error }

func (e *loggedError) Unwrap() error { return e.error }

// LogConstructor makes the loggers of controller-runtime, but they do not repeat a logged error with a stack trace at each attempt.
func LogConstructor(base logr.Logger, controller string, kind schema.GroupVersionKind) func(*reconcile.Request) logr.Logger {
	base = base.WithValues("controller", controller, "controllerGroup", kind.Group, "controllerKind", kind.Kind)
	if inner := base.GetSink(); inner != nil {
		base = base.WithSink(&onceSink{inner})
	}
	return func(request *reconcile.Request) logr.Logger {
		if request == nil {
			return base
		}
		return base.WithValues(kind.Kind, klog.KRef(request.Namespace, request.Name), "namespace", request.Namespace, "name", request.Name)
	}
}

// onceSink writes a loggedError as a line for debugging.
type onceSink struct{ logr.LogSink }

func (s *onceSink) Error(err error, msg string, keysAndValues ...any) {
	if _, logged := errors.AsType[*loggedError](err); !logged {
		s.LogSink.Error(err, msg, keysAndValues...)
	} else if s.Enabled(1) {
		s.Info(1, msg, append(keysAndValues, "error", err.Error())...)
	}
}

func (s *onceSink) WithValues(keysAndValues ...any) logr.LogSink {
	return &onceSink{s.LogSink.WithValues(keysAndValues...)}
}

func (s *onceSink) WithName(name string) logr.LogSink { return &onceSink{s.LogSink.WithName(name)} }

func (s *onceSink) WithCallDepth(depth int) logr.LogSink {
	if deep, ok := s.LogSink.(logr.CallDepthLogSink); ok {
		return &onceSink{deep.WithCallDepth(depth)}
	}
	return s
}
