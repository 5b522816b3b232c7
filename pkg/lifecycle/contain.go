// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"reflect"
	"runtime/debug"
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

// contain calls f and makes an error of a panic. The call has a goroutine of its
// own, because runtime.Goexit would end the controller's worker for good. What f
// starts itself it must contain itself.
func contain(f func() error) error {
	done := make(chan error, 1)
	go func() {
		returned := false
		defer func() {
			if value := recover(); value != nil {
				done <- &PanicError{Value: value, Stack: debug.Stack()}
			} else if !returned {
				done <- &PanicError{Goexit: true, Stack: debug.Stack()}
			}
		}()
		err := f()
		returned = true
		if value := reflect.ValueOf(err); value.Kind() == reflect.Pointer && value.IsNil() {
			// Its methods may panic where nothing contains it.
			err = fmt.Errorf("the handler returned an error of type %T that is a nil pointer; return nil where there is no error", err)
		}
		done <- err
	}()
	return <-done
}
