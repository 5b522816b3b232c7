// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package metered

import "fmt"

// Limits keep a template, or the values that it is given, from taking all
// memory or all stack. What exceeds one ends as a LimitError. A limit that is
// not greater than 0 has its default.
type Limits struct {
	// Depth limits how deep templates may call each other, by default 512.
	Depth int
	// OutputBytes limits all output together, by default 32 MiB.
	OutputBytes int64
	// StringBytes limits each text that a function returns, by default 16 MiB.
	StringBytes int64
	// Items limits the length of each list and map that a function returns, by
	// default 100,000.
	Items int
	// WorkBytes limits the size of everything that functions return, together,
	// by default 512 MiB.
	WorkBytes int64
}

// maxDepth is as far as the stack of a goroutine reaches safely, given
// maxNesting.
const maxDepth = 1000

// Complete fills in the defaults.
func (l Limits) Complete() Limits {
	return Limits{
		Depth:       min(positiveOr(l.Depth, 512), maxDepth),
		OutputBytes: positiveOr(l.OutputBytes, 32<<20),
		StringBytes: positiveOr(l.StringBytes, 16<<20),
		Items:       positiveOr(l.Items, 100_000),
		WorkBytes:   positiveOr(l.WorkBytes, 512<<20),
	}
}

func positiveOr[T int | int64](value, fallback T) T {
	if value > 0 {
		return value
	}
	return fallback
}

// LimitError says that a rendering exceeded one of its limits.
type LimitError struct {
	// Message says which one.
	Message string
}

// Error returns the message.
func (e *LimitError) Error() string { return e.Message }

// Exceeded returns a LimitError.
func Exceeded(format string, args ...any) *LimitError {
	return &LimitError{Message: fmt.Sprintf(format, args...)}
}
