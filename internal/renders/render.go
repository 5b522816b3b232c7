// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package renders

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/corbel-run/corbel/internal/cluster"
)

type (
	targetKey        struct{}
	rollbackHooksKey struct{}
	progressKey      struct{}
	randomnessKey    struct{}
	timeKey          struct{}
)

// WithTarget returns a context that holds the target cluster.
func WithTarget(ctx context.Context, target cluster.Target) context.Context {
	return context.WithValue(ctx, targetKey{}, target)
}

// Target returns the cluster that the dependent objects go to, with the user that writes them,
// and false if the context holds none.
func Target(ctx context.Context) (cluster.Target, bool) {
	target, ok := ctx.Value(targetKey{}).(cluster.Target)
	return target, ok
}

// WithRollbackHooks returns a context that says whether a generator also returns the objects
// that are applied only when the revision is rolled back to. They have the annotation run-on with
// the value rollback.
func WithRollbackHooks(ctx context.Context, included bool) context.Context {
	return context.WithValue(ctx, rollbackHooksKey{}, included)
}

// RollbackHooks reports whether a generator also returns the objects that are applied
// only when the revision is rolled back to; false if the context does not say so.
func RollbackHooks(ctx context.Context) bool {
	included, _ := ctx.Value(rollbackHooksKey{}).(bool)
	return included
}

// WithProgress returns a context for a generator to be called with, and a function that returns what
// the generator works on at the moment, as far as it reports it by NoteProgress.
func WithProgress(ctx context.Context) (context.Context, func() string) {
	var at atomic.Value
	at.Store("")
	return context.WithValue(ctx, progressKey{}, &at), func() string { return at.Load().(string) }
}

// NoteProgress is called by generators and transformers, to say what they work on, such as a template
// or an object, while they do.
func NoteProgress(ctx context.Context, what string) {
	if at, ok := ctx.Value(progressKey{}).(*atomic.Value); ok {
		at.Store(what)
	}
}

// Randomness says whether a rendering used random values or the time, as far as its
// generators report it. Several goroutines may use it at once.
type Randomness struct{ Values, Time atomic.Bool }

// Used reports whether the rendering used random values or the time.
func (r *Randomness) Used() bool { return r.Values.Load() || r.Time.Load() }

// WithRandomness returns a context for a generator to be called with, and the
// Randomness that the generator reports to.
func WithRandomness(ctx context.Context) (context.Context, *Randomness) {
	randomness := &Randomness{}
	return context.WithValue(ctx, randomnessKey{}, randomness), randomness
}

// RandomnessOf returns the Randomness of a context. If the context has none, a new one is returned.
func RandomnessOf(ctx context.Context) *Randomness {
	if randomness, ok := ctx.Value(randomnessKey{}).(*Randomness); ok {
		return randomness
	}
	return &Randomness{}
}

// WithTime returns a context with the time that a rendering takes for the current one.
func WithTime(ctx context.Context, now time.Time) context.Context {
	return context.WithValue(ctx, timeKey{}, now)
}

// Time returns the time that a rendering takes for the current one, and false if it is that of the clock.
func Time(ctx context.Context) (time.Time, bool) {
	now, ok := ctx.Value(timeKey{}).(time.Time)
	return now, ok
}
