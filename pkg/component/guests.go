// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"sync"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// generateTimeout and hookTimeout are the deadlines of code that is not ours.
	generateTimeout = 2 * time.Minute
	hookTimeout     = time.Minute
	// gracePeriod is for code that notices the deadline and wants to say what it was at.
	gracePeriod = 2 * time.Second
)

// guests runs code of the operator's author. Such code may panic, end its
// goroutine or never return; none of that may take a worker away. What does not
// return is left behind, and while it still runs, nothing else is run for the
// same component: otherwise every pass would leave one more behind.
type guests struct {
	grace time.Duration

	mu      sync.Mutex
	running map[any]string // what was left behind, by the key of the component
}

func newGuests() *guests {
	return &guests{grace: gracePeriod, running: map[any]string{}}
}

// run calls f with a deadline and returns its error. Since it may be left behind,
// f must not share with the caller what the caller goes on to use.
func (g *guests) run(ctx context.Context, key any, what string, timeout time.Duration, f func(ctx context.Context) error) error {
	if busy := g.busy(key); busy != "" {
		return fmt.Errorf("%s: not called, because the %s exceeded its time earlier and is still running", what, busy)
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	done := make(chan error, 1)
	go func() {
		defer cancel()
		defer g.left(key)
		outcome := errors.New("ended its goroutine (runtime.Goexit) in place of returning")
		defer func() { done <- outcome }()
		defer func() {
			if value := recover(); value != nil {
				logf.FromContext(ctx).Error(nil, "contained a panic", "in", what, "value", value, "stack", string(debug.Stack()))
				outcome = fmt.Errorf("panicked: %v", value)
			}
		}()
		if outcome = f(limited); isNilPointer(outcome) {
			outcome = fmt.Errorf("returned an error of type %T that is a nil pointer; return nil where there is no error", outcome)
		}
	}()
	err, returned := g.await(limited, done)
	switch {
	case returned && err == nil:
		return nil
	case returned:
		return fmt.Errorf("%s: %w", what, err)
	}
	g.leave(key, what, done)
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	return fmt.Errorf("%s: did not return within %s", what, timeout)
}

// isNilPointer reports whether an error is an interface around a nil pointer, whose
// methods may panic.
func isNilPointer(err error) bool {
	value := reflect.ValueOf(err)
	return value.Kind() == reflect.Pointer && value.IsNil()
}

// await waits until the deadline, and a little longer.
func (g *guests) await(limited context.Context, done <-chan error) (err error, returned bool) {
	select {
	case err := <-done:
		return err, true
	case <-limited.Done():
	}
	grace := time.NewTimer(g.grace)
	defer grace.Stop()
	select {
	case err := <-done:
		return err, true
	case <-grace.C:
		return nil, false
	}
}

func (g *guests) busy(key any) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running[key]
}

// leave remembers what was left behind, unless it has come to an end just now.
func (g *guests) leave(key any, what string, done <-chan error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(done) == 0 {
		g.running[key] = what
	}
}

// left forgets what was left behind. It is called after the outcome was sent, so
// leave cannot remember what has ended already.
func (g *guests) left(key any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.running, key)
}
