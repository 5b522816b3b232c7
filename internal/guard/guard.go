// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/corbel-run/corbel/pkg/types"
)

// NilPointerError replaces an error that is an interface around a nil pointer: its methods may
// panic.
type NilPointerError struct{ Type reflect.Type }

// Error describes the mistake as the end of a sentence.
func (e *NilPointerError) Error() string {
	return fmt.Sprintf("returned an error of type %s that is a nil pointer; return nil where there is no error", e.Type)
}

// TimeoutError is the error of code that has not returned in time.
type TimeoutError struct {
	// After is how long the code was waited for.
	After time.Duration
	// Busy, if it is not empty, names the code that has exceeded its time in an earlier call
	// and is still running; then this call was not made.
	Busy string
}

// Error describes the timeout as the end of a sentence.
func (e *TimeoutError) Error() string {
	if e.Busy != "" {
		return "not called, because the " + e.Busy + " exceeded its time earlier and is still running"
	}
	return fmt.Sprintf("did not return within %s", e.After)
}

// Into makes an error of a panic. It must be deferred itself.
func Into(err *error) {
	if value := recover(); value != nil {
		*err = &types.PanicError{Value: value, Stack: debug.Stack()}
	}
}

// Log logs an error that is, or wraps, a panic with its stack. It ignores other errors.
func Log(log logr.Logger, err error, message string, keysAndValues ...any) {
	if panicked, ok := errors.AsType[*types.PanicError](err); ok {
		log.Error(err, message, append(keysAndValues, "stack", string(panicked.Stack))...)
	}
}

// Call calls f, and returns its error, a *types.PanicError or a *NilPointerError.
func Call(f func() error) (err error) {
	defer Into(&err)
	if err = f(); isNilPointer(err) {
		return &NilPointerError{Type: reflect.TypeOf(err)}
	}
	return err
}

// CallNamed is Call with the name of the code, such as "the handler", before the error of a panic.
// An error that the code has returned, even if it wraps a panic of other code, stays as it is.
func CallNamed(name string, f func() error) error {
	err := Call(f)
	_, panicked := err.(*types.PanicError)
	_, nilPointer := err.(*NilPointerError)
	if panicked || nilPointer {
		return fmt.Errorf("%s %w", name, err)
	}
	return err
}

func isNilPointer(err error) bool {
	value := reflect.ValueOf(err)
	return value.Kind() == reflect.Pointer && value.IsNil()
}

// Guard remembers the calls that exceeded their deadline and still run. For the key of such a
// call nothing else runs: otherwise each attempt would add one more goroutine. It is safe for
// concurrent use.
type Guard struct {
	// grace is for code that notices the deadline and returns its result.
	grace time.Duration

	mu   sync.Mutex
	late map[*running]struct{}
}

// running is one call of Run.
type running struct {
	key   any
	what  string
	start time.Time
	ended bool
}

type (
	slowKey struct{}
	slow    struct {
		after time.Duration
		call  func(passed time.Duration)
	}
)

// errEnded is about code that calls runtime.Goexit, such as a hook that fails a test with t.Fatal.
var errEnded = errors.New("ended its goroutine (runtime.Goexit) in place of returning")

// never is longer than any call takes.
const never = 1 << 62

// WithSlow returns a context with which Run calls f when a call has not returned after this time, and
// again each time that twice as much time has passed. The goroutine that has called Run calls f.
func WithSlow(ctx context.Context, after time.Duration, f func(passed time.Duration)) context.Context {
	return context.WithValue(ctx, slowKey{}, slow{after, f})
}

// New returns a Guard. After the deadline of a call it waits for the grace period, too.
func New(grace time.Duration) *Guard { return &Guard{grace: grace, late: map[*running]struct{}{}} }

// Run calls f in a goroutine of its own, with a context that expires after the timeout; 0 means
// none of its own. What names f in errors about later calls with the key. The error is the error of
// Call, or of the context if that has ended before f returned, or a *TimeoutError.
//
// Since f may still run when Run returns, it must not share with the caller any value that the
// caller goes on to use.
func Run[T any](ctx context.Context, g *Guard, key any, what string, timeout time.Duration, f func(context.Context) (T, error)) (T, error) {
	var none T
	if earlier := g.busy(key); earlier != nil {
		return none, &TimeoutError{Busy: earlier.what, After: time.Since(earlier.start)}
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, timeout)
	}
	limited = context.WithValue(limited, slowKey{}, slow{}) // it runs in another goroutine
	type answer struct {
		value T
		err   error
	}
	current := &running{key: key, what: what, start: time.Now()}
	done := make(chan answer, 1)
	go func() {
		defer cancel()
		got := answer{err: errEnded}
		defer func() {
			done <- got
			g.finish(current)
		}()
		got.err = Call(func() (err error) {
			got.value, err = f(limited)
			return err
		})
	}()
	slow, _ := ctx.Value(slowKey{}).(slow)
	timer := time.NewTimer(cmp.Or(slow.after, never))
	defer timer.Stop()
	for limited.Err() == nil {
		select {
		case got := <-done:
			return got.value, got.err
		case <-limited.Done():
		case <-timer.C:
			passed := time.Since(current.start)
			slow.call(passed)
			timer.Reset(passed)
		}
	}
	grace := time.NewTimer(g.grace)
	defer grace.Stop()
	select {
	case got := <-done:
		return got.value, got.err
	case <-grace.C:
	}
	if !g.giveUp(current) {
		got := <-done
		return got.value, got.err
	}
	if ctx.Err() != nil {
		return none, ctx.Err()
	}
	return none, &TimeoutError{After: timeout}
}

// busy returns a call with the key that exceeded its deadline and still runs, or nil.
func (g *Guard) busy(key any) *running {
	g.mu.Lock()
	defer g.mu.Unlock()
	for earlier := range g.late {
		if earlier.key == key {
			return earlier
		}
	}
	return nil
}

// finish records that a call has returned.
func (g *Guard) finish(current *running) {
	g.mu.Lock()
	defer g.mu.Unlock()
	current.ended = true
	delete(g.late, current)
}

// giveUp records that the caller does not wait for a call any more. It returns false if the call
// has just returned.
func (g *Guard) giveUp(current *running) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !current.ended {
		g.late[current] = struct{}{}
	}
	return !current.ended
}
