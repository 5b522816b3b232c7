// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/corbel-run/corbel/pkg/manifests/internal/timeout"
	"github.com/corbel-run/corbel/pkg/types"
)

func TestRunReturnsWhatTheRenderingReturns(t *testing.T) {
	r := timeout.New("it")
	got, err := timeout.Run(t.Context(), r, time.Minute, func(context.Context) (int, error) { return 7, nil })
	if got != 7 || err != nil {
		t.Errorf("got %d and the error %v", got, err)
	}
	broken := errors.New("broken")
	got, err = timeout.Run(t.Context(), r, 0, func(context.Context) (int, error) { return 7, broken })
	if got != 0 || !errors.Is(err, broken) {
		t.Errorf("got %d and the error %v", got, err)
	}
	_, err = timeout.Run(t.Context(), r, time.Minute, func(context.Context) (int, error) { panic("no") })
	if p, ok := errors.AsType[*types.PanicError](err); !ok || len(p.Stack) == 0 {
		t.Errorf("a panic: got the error %v", err)
	}
}

func TestRunReportsWhereARenderingNoticedItsEnd(t *testing.T) {
	r := timeout.New("it")
	// On a busy machine it may notice too late, therefore several times.
	deadline := time.Now().Add(time.Minute)
	for {
		_, err := timeout.Run(t.Context(), r, time.Millisecond, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, fmt.Errorf("in line 5: %w", ctx.Err())
		})
		var late *timeout.Error
		if !errors.As(err, &late) {
			t.Fatalf("got the error %v", err)
		}
		if !late.Busy && strings.Contains(err.Error(), "in line 5") && errors.Is(err, context.DeadlineExceeded) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("got only the error %v", err)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestRunAbandonsARenderingAndRefusesOthersUntilItEnds(t *testing.T) {
	r, release := timeout.New("it"), make(chan struct{})
	_, err := timeout.Run(t.Context(), r, time.Millisecond, func(context.Context) (int, error) { <-release; return 0, nil })
	var late *timeout.Error
	if !errors.As(err, &late) || late.Busy || late.Generator != "it" {
		t.Fatalf("got the error %v", err)
	}
	run := func() error {
		_, err := timeout.Run(t.Context(), r, time.Minute, func(context.Context) (int, error) { return 0, nil })
		return err
	}
	if err := run(); !errors.As(err, &late) || !late.Busy {
		t.Fatalf("while it goes on: got the error %v", err)
	}
	close(release)
	deadline := time.Now().Add(2 * time.Minute)
	for err := run(); err != nil; err = run() {
		if time.Now().After(deadline) {
			t.Fatalf("after its end: still the error %v", err)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := timeout.New("it")
	_, err := timeout.Run(ctx, r, time.Minute, func(ctx context.Context) (int, error) { cancel(); <-ctx.Done(); return 0, ctx.Err() })
	var late *timeout.Error
	if !errors.Is(err, context.Canceled) || errors.As(err, &late) {
		t.Errorf("got the error %v", err)
	}
	_, err = timeout.Run(ctx, r, time.Minute, func(context.Context) (int, error) { t.Error("it ran"); return 0, nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got the error %v", err)
	}
}
