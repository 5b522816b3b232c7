// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"

	oteltrace "go.opentelemetry.io/otel/trace"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/metrics"
	"github.com/corbel-run/corbel/internal/redact"
	"github.com/corbel-run/corbel/internal/trace"
)

// telemetry is how a reconciler tells what it does: in spans, in metrics, and, by
// what it puts into the context, in a log without secrets.
type telemetry struct {
	controller string
	tracer     trace.Tracer
	population *metrics.Population[client.ObjectKey]

	mu sync.Mutex
	// secrets are those that the reconciles under way have met, by component.
	secrets map[client.ObjectKey]*redact.Secrets
}

func newTelemetry(controller string, provider oteltrace.TracerProvider) *telemetry {
	return &telemetry{
		controller: controller,
		tracer:     trace.New(provider),
		population: metrics.NewPopulation[client.ObjectKey](controller),
		secrets:    map[client.ObjectKey]*redact.Secrets{},
	}
}

// secretsOf returns the secrets that the reconcile of a component has met; nil, which is
// an empty set, if none is under way.
func (t *telemetry) secretsOf(key client.ObjectKey) *redact.Secrets {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.secrets[key]
}

// keepSecrets lets secretsOf return the set of a reconcile until done is called.
func (t *telemetry) keepSecrets(key client.ObjectKey, secrets *redact.Secrets) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.secrets[key] = secrets
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.secrets, key)
	}
}

// outcome is filled in by whoever knows what becomes of a pass.
type outcome struct {
	result metrics.Result
	// logged is the text of the error that the log has already.
	logged string
}

type outcomeKey struct{}

// note says what becomes of the pass of the context.
func note(ctx context.Context, result metrics.Result) {
	if pass, ok := ctx.Value(outcomeKey{}).(*outcome); ok {
		pass.result = result
	}
}

// pass runs a pass over a component, and tells about it.
func (t *telemetry) pass(ctx context.Context, key client.ObjectKey, run func(ctx context.Context) (ctrl.Result, error)) (ctrl.Result, error) {
	start := time.Now()
	secrets := redact.New()
	defer t.keepSecrets(key, secrets)()
	told := &outcome{}
	ctx = context.WithValue(ctx, outcomeKey{}, told)
	ctx = metrics.WithController(redact.With(ctx, secrets), t.controller)
	ctx = logf.IntoContext(ctx, secrets.Logger(logf.FromContext(ctx)))
	ctx, span := t.tracer.Start(ctx, "corbel.reconcile")
	span.Set("corbel.controller", t.controller)
	span.Set("corbel.namespace", key.Namespace)
	span.Set("corbel.name", key.Name)

	result, err := run(ctx)
	switch {
	case told.result != "":
	case err != nil:
		told.result = metrics.ResultError
	default:
		told.result = metrics.ResultConflict
	}
	span.Set("corbel.result", string(told.result))
	span.End(err)
	metrics.Reconciled(t.controller, told.result, time.Since(start))
	if err = secrets.Error(err); err != nil && err.Error() == secrets.Text(told.logged) {
		err = &loggedError{err}
	}
	return result, err
}

// part runs a part of a pass, in a span and with its duration measured.
func (t *telemetry) part(ctx context.Context, phase metrics.Phase, run func(ctx context.Context) error) error {
	start := time.Now()
	ctx, span := t.tracer.Start(ctx, "corbel."+string(phase))
	err := run(ctx)
	span.End(err)
	metrics.Took(t.controller, phase, time.Since(start))
	return err
}

// judged counts the component as the pass leaves it.
func (t *telemetry) judged(ctx context.Context, c Component, dependents map[string]int) {
	state, reason, _ := c.GetStatus().GetState()
	t.population.Set(client.ObjectKeyFromObject(c), metrics.Component{State: string(state), Reason: reason, Dependents: dependents})
	note(ctx, resultOf(state, reason))
}

// ordinary is how PhaseApplied is called in metrics.
const ordinary = "Applied"

// dependents counts the dependents of the component by phase, wherever its record is
// kept. If no pass has read it yet, only their number is known, and all of them count
// as being in the ordinary phase.
func (h *handler[T]) dependents(obj T) map[string]int {
	stored := obj.GetStatus().Inventory
	items, known := h.inventory.Items(h.inventoryComponent(obj), stored)
	if !known {
		return map[string]int{ordinary: stored.Count()}
	}
	count := map[string]int{}
	for _, item := range items {
		count[cmp.Or(string(item.Phase), ordinary)]++
	}
	return count
}

func resultOf(state State, reason string) metrics.Result {
	switch {
	case reason == v1alpha1.ReasonSuspended:
		return metrics.ResultSuspended
	case state == StateReady:
		return metrics.ResultReady
	case state == StateProcessing:
		return metrics.ResultProcessing
	case state == StatePending, state == StateDeletionPending:
		return metrics.ResultPending
	case state == StateDeleting:
		return metrics.ResultDeleting
	default:
		return metrics.ResultError
	}
}

// gone forgets a component that does not exist any more.
func (t *telemetry) gone(ctx context.Context, key client.ObjectKey) {
	note(ctx, metrics.ResultGone)
	t.population.Forget(key)
}

// counted returns a client whose requests are counted.
func counted(plain *http.Client) *http.Client {
	clone := http.Client{}
	if plain != nil {
		clone = *plain
	}
	clone.Transport = metrics.CountRequests(clone.Transport)
	return &clone
}
