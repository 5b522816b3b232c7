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
// generators report it by NoteRandom and Now. It may be used by several goroutines at once.
type Randomness struct{ values, time atomic.Bool }

// Used reports whether the rendering used random values or the time.
func (r *Randomness) Used() bool { return r.values.Load() || r.time.Load() }

// UsedTime reports whether the rendering used the time.
func (r *Randomness) UsedTime() bool { return r.time.Load() }

// WithRandomness returns a context for a generator to be called with, and what says
// afterwards whether the rendering used random values or the time.
func WithRandomness(ctx context.Context) (context.Context, *Randomness) {
	randomness := &Randomness{}
	return context.WithValue(ctx, randomnessKey, randomness), randomness
}

// NoteRandom is called by generators that use a random value. The fields of the objects that come from
// it keep their values for the whole revision of a component: the generator is called
// more than once, and what differs is random. The objects have to be of the type
// unstructured.Unstructured for that. The generators of Go templates and of charts
// call NoteRandom for functions such as randAlphaNum and genCA.
func NoteRandom(ctx context.Context) {
	if randomness, err := valueFrom[*Randomness](ctx, randomnessKey); err == nil {
		randomness.values.Store(true)
	}
}

// WithTime returns a context with the time that a rendering takes for the current one.
func WithTime(ctx context.Context, now time.Time) context.Context {
	return context.WithValue(ctx, timeKey, now)
}

// Now returns the time that a generator takes for the current one, and notes that it was
// used. For a component it is the time at which its revision was first rendered, so that
// what is made of it stays the same. If the context holds none, it is that of the clock.
func Now(ctx context.Context) time.Time {
	if randomness, err := valueFrom[*Randomness](ctx, randomnessKey); err == nil {
		randomness.time.Store(true)
	}
	if now, err := valueFrom[time.Time](ctx, timeKey); err == nil {
		return now
	}
	return time.Now()
}
