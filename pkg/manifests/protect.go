// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"reflect"

	"github.com/corbel-run/corbel/internal/guard"
)

// PanicError is the error that a panic in a generator or a transformer becomes.
type PanicError struct {
	// Value is what panic was called with.
	Value any
	// Stack is the stack trace of the panic. It is not part of the message.
	Stack []byte
}

// Error returns the value of the panic.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value of the panic if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// protect calls f, and makes errors of a panic, of the end of its goroutine, and of an error
// that is a nil pointer.
func protect(f func() error) error {
	switch err := guard.Call(f).(type) {
	case *guard.PanicError:
		if err.Goexit {
			return fmt.Errorf("it %w", err)
		}
		return &PanicError{Value: err.Value, Stack: err.Stack}
	case *guard.NilPointerError:
		return fmt.Errorf("it %w", err)
	default:
		return err
	}
}

// isNil tells whether v is nil or an interface around a nil pointer or function.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	switch value := reflect.ValueOf(v); value.Kind() {
	case reflect.Pointer, reflect.Func:
		return value.IsNil()
	default:
		return false
	}
}
