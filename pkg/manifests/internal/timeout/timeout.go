// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package timeout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/renders"
)

// grace is how long a rendering may take to notice that its time has passed. Most
// do, and then they report where they were.
const grace = 200 * time.Millisecond

// Runner runs the renderings of one generator. As long as an abandoned rendering goes on, it
// refuses to run another one: a template that never ends would otherwise take one more processor
// with every attempt.
type Runner struct {
	name  string
	guard *guard.Guard
}

// New returns a runner; the name is for errors.
func New(name string) *Runner { return &Runner{name: name, guard: guard.New(grace)} }

// Run runs f in a goroutine of its own, until f returns, the context ends or the timeout, if it is
// greater than 0, has passed. Panics become errors. A late end or a refusal becomes an Error.
func Run[T any](ctx context.Context, r *Runner, timeout time.Duration, f func(context.Context) (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, ctx.Err()
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	renders.NoteProgress(ctx, r.name)
	start := time.Now()
	result, err := guard.Run(ctx, r.guard, r, r.name, 0, f)
	switch failure := err.(type) { // the guard's own: the error of f may wrap an error of another guard
	case nil:
		return result, nil
	case *guard.TimeoutError:
		return none, &Error{Generator: r.name, After: failure.After, Busy: true}
	}
	switch {
	case ctx.Err() == nil || !errors.Is(err, ctx.Err()):
		return none, err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return none, &Error{Generator: r.name, After: time.Since(start), Err: err}
	default:
		return none, fmt.Errorf("%s: %w", r.name, err)
	}
}

// Error means that a generator was not done in time. Rendering can often not be stopped from
// outside; it keeps running then, and its generator renders nothing else until it has ended.
type Error struct {
	// Generator names it.
	Generator string
	// After is how long the rendering has been going on.
	After time.Duration
	// Busy means that nothing was tried, because an earlier rendering, which
	// exceeded its time, is still going on.
	Busy bool
	// Err is the reason for the end, usually context.DeadlineExceeded.
	Err error
}

// Error describes the timeout.
func (e *Error) Error() string {
	after := e.After.Round(time.Millisecond)
	if e.Busy {
		return fmt.Sprintf("%s: an earlier rendering exceeded its time and is still going on after %s; nothing else is rendered until it ends", e.Generator, after)
	}
	return fmt.Sprintf("%s: rendering was not done after %s: %v", e.Generator, after, e.Err)
}

// Unwrap returns the reason for the end.
func (e *Error) Unwrap() error { return e.Err }
