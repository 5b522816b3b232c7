// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"time"
)

// turn is the place of one step among those that are under way.
type turn struct {
	pace  *pace
	held  bool
	since time.Time
	// worked is how long it was held before.
	worked time.Duration
}

// take waits until it is the turn of the step.
func (t *turn) take(ctx context.Context) error {
	if err := t.pace.enter(ctx); err != nil {
		return err
	}
	t.held, t.since = true, time.Now()
	return nil
}

// rest gives the turn away for a while.
func (t *turn) rest() {
	if t.held {
		t.held, t.worked = false, t.worked+time.Since(t.since)
		t.pace.release()
	}
}

// end ends the step. What it waited for says nothing about how fast the server is.
func (t *turn) end() {
	if t.held {
		t.held = false
		t.pace.leave(t.worked + time.Since(t.since))
	}
}

type turnKey struct{}

func withTurn(ctx context.Context, t *turn) context.Context {
	return context.WithValue(ctx, turnKey{}, t)
}

// pause waits until something may have happened in the cluster, and tells whether the
// context goes on. It is the turn of other steps meanwhile. Whoever is told that the
// context ended has no turn any more; nothing but cleaning up is left to do then.
func pause(ctx context.Context, d time.Duration) bool {
	t, ok := ctx.Value(turnKey{}).(*turn)
	if ok {
		t.rest()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return !ok || t.take(ctx) == nil
	}
}
