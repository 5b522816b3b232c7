// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestGuests(t *testing.T) {
	failure := errors.New("no")
	tests := []struct {
		name string
		f    func(ctx context.Context) error
		err  string
	}{
		{"succeeds", func(context.Context) error { return nil }, ""},
		{"fails", func(context.Context) error { return failure }, "hook: no"},
		{"panics", func(context.Context) error { panic("oh") }, "hook: panicked: oh"},
		{"panics with nil", func(context.Context) error { panic(nil) }, "hook: panicked"},
		{"ends its goroutine", func(context.Context) error { runtime.Goexit(); return nil }, "hook: ended its goroutine"},
		{"returns a nil pointer", func(context.Context) error { var err *invalidError; return err }, "hook: returned an error of type *component.invalidError that is a nil pointer"},
		{"notices the deadline", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, "hook: context deadline exceeded"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			timeout := time.Minute
			if test.name == "notices the deadline" {
				timeout = 20 * time.Millisecond
			}
			err := newGuests().run(t.Context(), "key", "hook", timeout, test.f)
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.HasPrefix(err.Error(), test.err)) {
				t.Errorf("error %v, want %q", err, test.err)
			}
			if test.name == "fails" && !errors.Is(err, failure) {
				t.Error("the error is not wrapped")
			}
		})
	}
}

func TestGuestsThatStayAreLeftBehind(t *testing.T) {
	g := newGuests()
	g.grace = time.Millisecond
	release := make(chan struct{})
	err := g.run(t.Context(), "a", "generator", time.Millisecond, func(context.Context) error { <-release; return nil })
	if err == nil || !strings.Contains(err.Error(), "generator: did not return within 1ms") {
		t.Fatalf("error %v", err)
	}
	ok := func(context.Context) error { return nil }
	if err := g.run(t.Context(), "a", "hook", time.Minute, ok); err == nil || !strings.Contains(err.Error(), "generator exceeded its time") {
		t.Errorf("the component is visited again meanwhile: %v", err)
	}
	if err := g.run(t.Context(), "b", "hook", time.Minute, ok); err != nil {
		t.Errorf("another component has to suffer: %v", err)
	}
	close(release)
	for deadline := time.Now().Add(10 * time.Second); g.busy("a") != ""; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the component is never visited again")
		}
	}
	if err := g.run(t.Context(), "a", "hook", time.Minute, ok); err != nil {
		t.Error(err)
	}
}

func TestGuestsSayThatTheProcessStops(t *testing.T) {
	g := newGuests()
	g.grace = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	release := make(chan struct{})
	defer close(release)
	err := g.run(ctx, "a", "hook", time.Hour, func(context.Context) error { <-release; return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
