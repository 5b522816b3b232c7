// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
)

type ownError struct{ error }

func TestForeignCodeEndsAsAnError(t *testing.T) {
	failure := errors.New("no")
	for _, test := range []struct {
		name string
		f    func() error
		want string
	}{
		{"succeeds", func() error { return nil }, ""},
		{"fails", func() error { return failure }, "no"},
		{"panics", func() error { panic("oh") }, "panicked: oh"},
		{"panics with an error", func() error { panic(failure) }, "panicked: no"},
		{"panics with nil", func() error { panic(nil) }, "panicked: panic called with nil argument"},
		{"dereferences nil", func() error { var p *int; *p = 1; return nil }, "panicked: runtime error: invalid memory address or nil pointer dereference"},
		{"returns a nil pointer", func() error { var err *ownError; return err }, "returned an error of type *guard.ownError that is a nil pointer; return nil"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, run := Run(t.Context(), New(0), "key", "hook", time.Minute, func(context.Context) (int, error) { return 0, test.f() })
			for how, err := range map[string]error{"Call": Call(test.f), "Run": run} {
				if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want)) {
					t.Errorf("%s: error %v, want %q", how, err, test.want)
				}
				if errors.Is(err, failure) != (test.name == "fails") {
					t.Errorf("%s: what was thrown counts as an answer, or an answer is lost: %v", how, err)
				}
				if panicked, ok := errors.AsType[*types.PanicError](err); ok && !strings.Contains(string(panicked.Stack), "guard_test.go") {
					t.Errorf("%s: stack:\n%s", how, panicked.Stack)
				}
			}
		})
	}
}

func TestACallThatEndsItsGoroutineIsWaitedForNoLonger(t *testing.T) {
	_, err := Run(t.Context(), New(0), "key", "hook", 0, func(context.Context) (int, error) { runtime.Goexit(); return 0, nil })
	if !errors.Is(err, errEnded) {
		t.Errorf("error %v", err)
	}
}

func TestIntoIsForTheGoroutineOfTheCaller(t *testing.T) {
	f := func() (err error) {
		defer Into(&err)
		panic("oh")
	}
	if err := f(); err == nil || err.Error() != "panicked: oh" {
		t.Errorf("error %v", err)
	}
}

func TestACallThatNoticesTheDeadlineIsWaitedFor(t *testing.T) {
	got, err := Run(t.Context(), New(time.Minute), "key", "hook", time.Millisecond, func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 7, ctx.Err()
	})
	if got != 7 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %d, error %v", got, err)
	}
}

func TestACallThatDoesNotReturnIsNotWaitedFor(t *testing.T) {
	g, release := New(time.Millisecond), make(chan struct{})
	_, err := Run(t.Context(), g, "a", "generator", time.Millisecond, func(context.Context) (int, error) { <-release; return 0, nil })
	if err == nil || err.Error() != "did not return within 1ms" {
		t.Fatalf("error %v", err)
	}
	run := func(key string) error {
		_, err := Run(t.Context(), g, key, "hook", time.Minute, func(context.Context) (int, error) { return 0, nil })
		return err
	}
	check.Fails(t, run("a"), "not called, because the generator exceeded its time earlier")
	if err := run("b"); err != nil {
		t.Errorf("another key has to wait: %v", err)
	}
	close(release)
	for deadline := time.Now().Add(2 * time.Minute); run("a") != nil; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("nothing is run for the key any more")
		}
	}
}

func TestTheEndOfTheContextIsNoTimeout(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	release := make(chan struct{})
	defer close(release)
	_, err := Run(ctx, New(time.Millisecond), "a", "hook", time.Hour, func(context.Context) (int, error) { <-release; return 0, nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestASlowCallIsReportedByTheGoroutineThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []time.Duration // the race detector notices another goroutine
		ctx := WithSlow(t.Context(), time.Second, func(passed time.Duration) { reported = append(reported, passed) })
		call := func(takes time.Duration) {
			_, err := Run(ctx, New(0), "key", "hook", time.Minute, func(ctx context.Context) (int, error) {
				time.Sleep(takes)
				return Run(ctx, New(0), "inner", "hook", time.Minute, func(context.Context) (int, error) {
					time.Sleep(takes)
					return 0, nil
				})
			})
			if err != nil {
				t.Error(err)
			}
		}
		call(400 * time.Millisecond)
		if len(reported) > 0 {
			t.Errorf("a fast call is reported after %v", reported)
		}
		call(2500 * time.Millisecond)
		if want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}; !slices.Equal(reported, want) {
			t.Errorf("reported after %v, want %v", reported, want)
		}
	})
}
