// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
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

// protect calls f in a goroutine of its own. A panic in a reconciler's
// goroutine ends the operator, and runtime.Goexit would silently take one of
// its workers away; here both end as errors.
func protect(f func() error) error {
	done := make(chan error, 1)
	go func() {
		err := errors.New("it ended its goroutine (runtime.Goexit) in place of returning")
		defer func() { done <- err }()
		defer func() {
			if value := recover(); value != nil {
				err = &PanicError{Value: value, Stack: debug.Stack()}
			}
		}()
		if err = f(); err != nil && isNil(err) {
			err = fmt.Errorf("it returned an error of type %T that is a nil pointer; return nil where there is no error", err)
		}
	}()
	return <-done
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
