// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/corbel-run/corbel/pkg/manifests"
)

// grace is how long a rendering may take to notice that its time is over. Most
// do, and then they tell where they were.
const grace = 200 * time.Millisecond

// Runner runs the renderings of one generator. As long as one that was given up
// goes on, it refuses to run others: a template that never ends would otherwise
// take one more processor with every attempt.
type Runner struct {
	name string

	mu   sync.Mutex
	left map[*rendering]struct{} // behind
}

// rendering is one call of Run.
type rendering struct {
	start time.Time
	ended bool
}

// New returns a runner; the name is for errors.
func New(name string) *Runner {
	return &Runner{name: name, left: make(map[*rendering]struct{})}
}

// Run runs f in a goroutine of its own, until f returns, the context ends or
// the timeout, if it is greater than 0, is over. Panics become errors. What ends
// late or is refused becomes a RenderTimeoutError.
func Run[T any](ctx context.Context, r *Runner, timeout time.Duration, f func(context.Context) (T, error)) (T, error) {
	var zero T
	if err := errors.Join(ctx.Err(), r.refusal()); err != nil {
		return zero, err
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	current := &rendering{start: time.Now()}
	var result T
	done := make(chan error, 1)
	go func() {
		err := errors.New("the rendering ended its goroutine in place of returning")
		defer func() { r.end(current); done <- err }()
		defer func() {
			if value := recover(); value != nil {
				err = &manifests.PanicError{Value: value, Stack: debug.Stack()}
			}
		}()
		var value T
		value, err = f(ctx)
		result = value
	}()
	select {
	case err := <-done:
		return finished(ctx, r, current, result, err)
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err := <-done:
		return finished(ctx, r, current, result, err)
	case <-timer.C:
	}
	if !r.leave(current) {
		err := <-done
		return finished(ctx, r, current, result, err)
	}
	return zero, r.late(ctx, current, ctx.Err())
}

// finished is called after the goroutine has ended, so that the result is safe
// to read.
func finished[T any](ctx context.Context, r *Runner, current *rendering, result T, err error) (T, error) {
	if err == nil {
		return result, nil
	}
	var zero T
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = r.late(ctx, current, err)
	}
	return zero, err
}

// late tells an end of time from an end of interest.
func (r *Runner) late(ctx context.Context, current *rendering, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &manifests.RenderTimeoutError{Generator: r.name, After: time.Since(current.start), Err: err}
	}
	return fmt.Errorf("%s: %w", r.name, err)
}

func (r *Runner) refusal() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for earlier := range r.left {
		return &manifests.RenderTimeoutError{Generator: r.name, After: time.Since(earlier.start), Busy: true}
	}
	return nil
}

func (r *Runner) end(current *rendering) {
	r.mu.Lock()
	defer r.mu.Unlock()
	current.ended = true
	delete(r.left, current)
}

// leave gives the rendering up, unless it has just ended.
func (r *Runner) leave(current *rendering) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if current.ended {
		return false
	}
	r.left[current] = struct{}{}
	return true
}
