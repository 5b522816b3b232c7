// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/clients"
	"github.com/corbel-run/corbel/internal/metrics"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// A component that cannot get to its target is woken when that changes. These
// delays are the net below.
const (
	turnBase         = 200 * time.Millisecond
	turnLimit        = 30 * time.Second
	unreachableDelay = 30 * time.Second
)

// targetSource is targets.
type targetSource interface {
	enter(id identity, who client.ObjectKey) (target, error)
	settle(owner reconciler.Owner, home engine)
	forget(owner reconciler.Owner)
}

// unreachableError means that the target cluster does not answer.
type unreachableError struct {
	err error
	net time.Duration
}

func (e *unreachableError) Error() string { return e.err.Error() }
func (e *unreachableError) Unwrap() error { return e.err }

// enter returns the target for an identity; leave it at the end of the pass. A
// component whose turn has not come ends its pass here: no worker waits. The engine
// of the target makes digests, so the key has to be there.
func (h *handler[T]) enter(ctx context.Context, obj T, id identity) (target, error) {
	if _, err := h.digestKey.get(ctx); err != nil {
		return target{}, err
	}
	key := client.ObjectKeyFromObject(obj)
	t, err := h.targets.enter(id, key)
	if errors.Is(err, clients.ErrBusy) {
		note(ctx, metrics.ResultPending)
		after := backoff.Jitter(h.turns.Next(key), jitter, backoff.Random())
		return target{}, &lifecycle.LaterError{After: after, Err: err}
	}
	h.turns.Reset(key)
	if err == nil {
		h.targets.settle(h.owner(obj), t.engine)
		return t, nil
	}
	err = h.about(obj, err)
	_, unreachable := errors.AsType[*clients.UnreachableError](err)
	_, denied := errors.AsType[*cluster.AddressDeniedError](err)
	if unreachable && !denied {
		return target{}, &unreachableError{err: err, net: backoff.Jitter(unreachableDelay, jitter, backoff.Random())}
	}
	return target{}, err
}
