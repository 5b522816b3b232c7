// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/result"
)

// reasonMissing means that the external resource of an object under the management policy skip existed
// and is gone.
//
// Conditions: Ready False, Reconciling True
// What to do: create the external resource again, or change the management policy so that the operator does it.
const reasonMissing = "ExternalResourceMissing"

// Handler is the lifecycle.Handler of a Client. If the Client is a Claimer or a
// lifecycle.Suspender, that counts.
type Handler[T Object] struct {
	client  Client[T]
	options Options
}

var (
	_ lifecycle.Handler[Object]   = (*Handler[Object])(nil)
	_ lifecycle.Suspender[Object] = (*Handler[Object])(nil)
)

// New returns the Handler for the client. Give it to lifecycle.SetupWithManager.
func New[T Object](client Client[T], options Options) *Handler[T] {
	return &Handler[T]{client: client, options: options.complete()}
}

// Claim calls the Claim of the client, if it is a Claimer.
func (h *Handler[T]) Claim(ctx context.Context, obj T) error {
	if claimer, ok := h.client.(Claimer[T]); ok {
		return claimer.Claim(ctx, obj)
	}
	return nil
}

// Suspended calls the Suspended of the client, if it is a lifecycle.Suspender.
func (h *Handler[T]) Suspended(obj T) bool {
	suspender, ok := h.client.(lifecycle.Suspender[T])
	return ok && suspender.Suspended(obj)
}

// UpdateStatus observes the recorded resource.
func (h *Handler[T]) UpdateStatus(ctx context.Context, obj T) error {
	observed, err := h.observe(ctx, obj)
	if err != nil || observed.Exists || obj.GetExternal().Phase != PhaseCreated {
		return err
	}
	missing := result.NewError(errors.New("the external resource is gone"), result.SeverityWarning, reasonMissing)
	missing.Retry = result.RetryVerySlow
	return missing
}

// CreateOrUpdate observes the resource, and creates or updates it if need be.
func (h *Handler[T]) CreateOrUpdate(ctx context.Context, obj T, commit lifecycle.Commit) (result.Result, error) {
	observed, err := h.observe(ctx, obj)
	if err != nil {
		return result.Empty, err
	}
	switch decide(h.factsOf(obj, observed, false)) {
	case actCreate:
		*obj.GetExternal() = Record{Token: string(uuid.NewUUID()), Phase: PhaseCreating}
		return h.create(ctx, obj, commit, true)
	case actRepeat:
		return h.create(ctx, obj, commit, h.options.pendingFor(obj.GetExternal()) <= 0)
	case actUpdate:
		return h.update(ctx, obj, commit)
	case actAwait:
		return result.Empty, inProgress(vocabulary.ReasonProcessing, observed.Message, 0)
	case actWait:
		return result.Empty, h.createPending(obj, vocabulary.ReasonProcessing)
	default:
		return result.Success, nil
	}
}

// create makes the intent durable and acts on it. Alone means that no other Create with
// this token can be under way.
func (h *Handler[T]) create(ctx context.Context, obj T, commit lifecycle.Commit, alone bool) (result.Result, error) {
	record, start := obj.GetExternal(), h.options.Clock()
	record.Since = &metav1.MicroTime{Time: start}
	// On the monotonic clock: a process that stood still must not go on as if it had not.
	limited, cancel := context.WithTimeout(ctx, h.options.Timeout)
	defer cancel()
	if err := commit(limited); err != nil {
		return result.Empty, err
	}
	// The monotonic clock may stand still with the machine; the other one does not.
	if late := h.options.Clock().Sub(start) > h.options.Timeout; late || limited.Err() != nil {
		return result.Empty, inProgress(vocabulary.ReasonProcessing, fmt.Sprintf("it took longer than %s to record the Create; it is not sent", h.options.Timeout), 0)
	}
	done, err := h.client.Create(limited, obj)
	record = obj.GetExternal()
	if err != nil {
		if _, refused := errors.AsType[*RefusedError](err); refused && alone {
			*record = Record{}
		}
		return result.Empty, err
	}
	record.Phase, record.Name = PhaseCreated, cmp.Or(done.Name, record.Name)
	if alone && !h.options.EventuallyConsistent {
		record.Since = nil
	}
	return h.conclude(ctx, obj, done)
}

func (h *Handler[T]) update(ctx context.Context, obj T, commit lifecycle.Commit) (result.Result, error) {
	if err := commit(ctx); err != nil {
		return result.Empty, err
	}
	done, err := h.bounded(ctx, obj, h.client.Update)
	if err != nil {
		return result.Empty, err
	}
	return h.conclude(ctx, obj, done)
}

// conclude observes whether a request has taken effect.
func (h *Handler[T]) conclude(ctx context.Context, obj T, done Operation) (result.Result, error) {
	if done.InProgress {
		return result.Empty, inProgress(vocabulary.ReasonProcessing, done.Message, done.After)
	}
	observed, err := h.observe(ctx, obj)
	switch {
	case err != nil:
		return result.Empty, err
	case observed.Exists && observed.UpToDate && !observed.InProgress:
		return result.Success, nil
	default:
		return result.Empty, inProgress(vocabulary.ReasonProcessing, observed.Message, 0)
	}
}

// Delete deletes the resource and looks until it is gone for good.
func (h *Handler[T]) Delete(ctx context.Context, obj T, commit lifecycle.Commit) (result.Result, error) {
	observed, err := h.observe(ctx, obj)
	if err != nil {
		return result.Empty, err
	}
	if decide(h.factsOf(obj, observed, true)) == actDelete {
		if err := commit(ctx); err != nil {
			return result.Empty, err
		}
		done, err := h.bounded(ctx, obj, h.client.Delete)
		if err != nil {
			return result.Empty, err
		}
		if done.InProgress {
			return result.Empty, inProgress(vocabulary.ReasonDeletionProcessing, done.Message, done.After)
		}
		if observed, err = h.observe(ctx, obj); err != nil {
			return result.Empty, err
		}
	}
	switch decide(h.factsOf(obj, observed, true)) {
	case actNothing:
		return result.Success, nil
	case actWait:
		return result.Empty, h.createPending(obj, vocabulary.ReasonDeletionProcessing)
	default:
		return result.Empty, inProgress(vocabulary.ReasonDeletionProcessing, cmp.Or(observed.Message, "the external resource is still there"), 0)
	}
}

// observe looks for the resource on record, and records its state.
func (h *Handler[T]) observe(ctx context.Context, obj T) (Observation, error) {
	record := obj.GetExternal()
	if record.Phase == "" {
		return Observation{}, nil
	}
	h.options.correct(record)
	limited, cancel := context.WithTimeout(ctx, h.options.Timeout)
	defer cancel()
	observed, err := h.client.Observe(limited, obj)
	if err != nil {
		return Observation{}, err
	}
	if observed.Exists {
		record.Phase, record.Name = PhaseCreated, cmp.Or(observed.Name, record.Name)
		if h.options.pendingFor(record) <= 0 {
			record.Since = nil
		}
	}
	return observed, nil
}

// bounded sends a request that must not hold up other objects for ever.
func (h *Handler[T]) bounded(ctx context.Context, obj T, send func(context.Context, T) (Operation, error)) (Operation, error) {
	limited, cancel := context.WithTimeout(ctx, h.options.Timeout)
	defer cancel()
	return send(limited, obj)
}

func (h *Handler[T]) factsOf(obj T, observed Observation, deleting bool) facts {
	record := obj.GetExternal()
	return facts{
		deleting: deleting, phase: record.Phase,
		exists: observed.Exists, upToDate: observed.UpToDate, inProgress: observed.InProgress,
		expired: h.options.pendingFor(record) <= 0, notIdempotent: h.options.NotIdempotent,
	}
}

// inProgress is for work of the API.
func inProgress(reason, message string, after time.Duration) error {
	err := result.NewError(errors.New(cmp.Or(message, "the API is at work")), result.SeverityInfo, reason)
	err.After = after
	return err
}

// createPending is the error while a Create may still take effect.
func (h *Handler[T]) createPending(obj T, reason string) error {
	record := obj.GetExternal()
	return inProgress(reason, fmt.Sprintf("the Create of %s may still take effect", record.Since.Format(time.RFC3339)), h.options.pendingFor(record)+time.Millisecond)
}

const (
	defaultTimeout     = 30 * time.Second
	defaultGracePeriod = 10 * time.Second
)

// Options describe the API. The zero value is for an API that allows to repeat a Create with the same token, and
// that shows a created resource at once.
type Options struct {
	// Timeout is how long each call of the Client may take, for a Create with the time to record its intent.
	//
	// Default: 30 seconds
	Timeout time.Duration
	// GracePeriod is how long after its Timeout a Create may still become visible, plus the difference between the
	// clocks of replicas. Until then, an observation without a resource does not count.
	//
	// Default: 10 seconds
	GracePeriod time.Duration
	// NotIdempotent is for APIs that create another resource for the same token. After an unknown outcome, the
	// next attempt waits for Timeout and GracePeriod.
	//
	// Default: false
	NotIdempotent bool
	// EventuallyConsistent is for APIs that may not show a created resource at once.
	//
	// Default: false
	EventuallyConsistent bool
	// Clock is the time for the Record.
	//
	// Default: time.Now
	Clock func() time.Time
}

func (o Options) complete() Options {
	o.Timeout = cmp.Or(max(o.Timeout, 0), defaultTimeout)
	o.GracePeriod = cmp.Or(max(o.GracePeriod, 0), defaultGracePeriod)
	clock := o.Clock
	if clock == nil {
		clock = time.Now
	}
	// Without the monotonic reading, which two times would be compared by: it may stand
	// still with the machine, and no other process knows it.
	o.Clock = func() time.Time { return clock().Round(0) }
	return o
}

// correct sets a recorded time of a Create that is in the future to now: the clock of the
// process that wrote it was ahead, and to wait for that time might be to wait for ever.
func (o Options) correct(record *Record) {
	if now := o.Clock(); record.Since != nil && record.Since.After(now.Add(o.GracePeriod)) {
		record.Since = &metav1.MicroTime{Time: now}
	}
}

// pendingFor returns for how long the last Create of the record may still take effect.
func (o Options) pendingFor(record *Record) time.Duration {
	if record.Since == nil {
		return 0
	}
	passed := o.Clock().Sub(record.Since.Time)
	// A time that is a little in the future comes from another clock.
	return min(max(o.Timeout+o.GracePeriod-passed, 0), o.Timeout+o.GracePeriod)
}
