// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/guard"
)

// PanicError is what a panic in a handler becomes. It is an ordinary error: the
// object says so in its condition and is tried again. It does not unwrap: what was
// thrown was not meant as an answer, so nothing is concluded from it.
type PanicError struct {
	// Value is what the panic was called with.
	Value any
	// Stack is where that happened.
	Stack []byte
	// Goexit means that the goroutine was ended without a panic, by runtime.Goexit.
	Goexit bool
}

// Error does not hold the stack: that belongs in the log.
func (e *PanicError) Error() string {
	if e.Goexit {
		return "the handler ended its goroutine"
	}
	return fmt.Sprintf("the handler panicked: %v", e.Value)
}

// contain calls f and makes an error of a panic. What f starts itself it must contain itself.
func contain(f func() error) error {
	switch err := guard.Call(f).(type) {
	case *guard.PanicError:
		return &PanicError{Value: err.Value, Stack: err.Stack, Goexit: err.Goexit}
	case *guard.NilPointerError:
		return fmt.Errorf("the handler %w", err)
	default:
		return err
	}
}

func logPanic(ctx context.Context, err error) {
	if p, ok := errors.AsType[*PanicError](err); ok {
		logf.FromContext(ctx).Error(p, "contained a panic", "stack", string(p.Stack))
	}
}
