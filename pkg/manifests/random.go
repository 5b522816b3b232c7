// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	randomnessKey key = "randomness"
	timeKey       key = "time"
)

// Randomness says whether a rendering used random values or the time, as far as the
// generators report it by NoteRandom. It may be used by several goroutines at once.
type Randomness struct{ used atomic.Bool }

// Used reports whether the rendering used random values or the time.
func (r *Randomness) Used() bool { return r.used.Load() }

// WithRandomness returns a context for a generator to be called with, and what says
// afterwards whether the rendering used random values or the time.
func WithRandomness(ctx context.Context) (context.Context, *Randomness) {
	randomness := &Randomness{}
	return context.WithValue(ctx, randomnessKey, randomness), randomness
}

// NoteRandom is called by generators that use a random value or the time. The values of the
// manifests that come from it are kept for the whole revision of a component: the
// generator is called twice, and what differs is random. Generators of Go templates and of
// charts call it for functions such as randAlphaNum, genCA and now.
func NoteRandom(ctx context.Context) {
	if randomness, err := valueFrom[*Randomness](ctx, randomnessKey); err == nil {
		randomness.used.Store(true)
	}
}

// WithTime returns a context that holds the time that a rendering takes for the current one.
func WithTime(ctx context.Context, now time.Time) context.Context {
	return context.WithValue(ctx, timeKey, now)
}

// TimeFromContext returns the time that a rendering should take for the current one; it fails if
// the context holds none. Then it is the time of the clock.
func TimeFromContext(ctx context.Context) (time.Time, error) {
	return valueFrom[time.Time](ctx, timeKey)
}
