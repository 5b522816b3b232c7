// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package types

// Selector picks some of many values.
type Selector[T any] interface {
	// Matches tells whether the value is picked.
	Matches(value T) bool
}

// SelectorFunc makes a function a Selector.
type SelectorFunc[T any] func(value T) bool

// Matches calls the function.
func (f SelectorFunc[T]) Matches(value T) bool { return f(value) }
