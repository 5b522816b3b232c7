// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"time"
)

// passBuckets reach from a pass that finds nothing to do to one that writes
// thousands of objects, in seconds.
var passBuckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}

var (
	reconciles = counter("corbel_reconcile_total",
		"Passes over components, by what came out: ready, processing, pending, error, deleting, suspended, gone or conflict.", "controller", "result")
	reconcileSeconds = histogram("corbel_reconcile_duration_seconds",
		"Duration of passes over components.", passBuckets, "controller")
	phaseSeconds = histogram("corbel_phase_duration_seconds",
		"Duration of the parts of reconciles: hooks, render, read, plan, record and execute.", passBuckets, "controller", "phase")
	writes = counter("corbel_writes_total",
		"Writes of dependent objects that succeeded, by verb and by the reason of the plan.", "controller", "verb", "reason")
	writeErrors = counter("corbel_write_errors_total",
		"Writes of dependent objects that failed, by verb and by the class of the failure.", "controller", "verb", "class")
	orphans = counter("corbel_orphans_found_total",
		"Objects that bear our label and annotation and are in no inventory.", "controller")
	heldRenders = counter("corbel_renders_held_back_total",
		"Passes that kept the last manifests, because they change with every rendering.", "controller")
)

// Phase is a part of a pass.
type Phase string

// The parts of a pass.
const (
	PhaseHooks   Phase = "hooks"
	PhaseRender  Phase = "render"
	PhaseRead    Phase = "read"
	PhasePlan    Phase = "plan"
	PhaseRecord  Phase = "record"
	PhaseExecute Phase = "execute"
)

// Result is what came out of a pass.
type Result string

// What comes out of passes.
const (
	ResultReady      Result = "ready"
	ResultProcessing Result = "processing"
	ResultPending    Result = "pending"
	ResultError      Result = "error"
	ResultDeleting   Result = "deleting"
	ResultSuspended  Result = "suspended"
	ResultGone       Result = "gone"
	ResultConflict   Result = "conflict"
)

type contextKey struct{}

// WithController returns a context in which metrics belong to the controller.
func WithController(ctx context.Context, controller string) context.Context {
	return context.WithValue(ctx, contextKey{}, controller)
}

// ControllerOf returns the controller of the context, or else the given name.
func ControllerOf(ctx context.Context, otherwise string) string {
	if controller, ok := ctx.Value(contextKey{}).(string); ok {
		return controller
	}
	return otherwise
}

// Reconciled counts a pass.
func Reconciled(controller string, result Result, took time.Duration) {
	reconciles.WithLabelValues(controller, string(result)).Inc()
	reconcileSeconds.WithLabelValues(controller).Observe(took.Seconds())
}

// Took notes how long a part of a pass took.
func Took(controller string, phase Phase, took time.Duration) {
	phaseSeconds.WithLabelValues(controller, string(phase)).Observe(took.Seconds())
}

// Wrote counts a write that succeeded. Verb and reason are those of plans.
func Wrote(controller, verb, reason string) {
	writes.WithLabelValues(controller, verb, reason).Inc()
}

// WriteFailed counts a write that failed.
func WriteFailed(controller, verb, class string) {
	writeErrors.WithLabelValues(controller, verb, class).Inc()
}

// OrphansFound counts objects that bear our label and annotation and are in no inventory.
func OrphansFound(controller string, n int) {
	if n > 0 {
		orphans.WithLabelValues(controller).Add(float64(n))
	}
}

// RenderHeldBack counts a pass that kept the last manifests.
func RenderHeldBack(controller string) { heldRenders.WithLabelValues(controller).Inc() }
