// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"time"
)

// RenderTimeoutError says that a generator was not done in time. Rendering can
// often not be stopped from outside; it is left behind then, and its generator
// renders nothing else until it has ended.
type RenderTimeoutError struct {
	// Generator says which one it was.
	Generator string
	// After is how long the rendering has been going on.
	After time.Duration
	// Busy means that nothing was tried, because an earlier rendering, which
	// exceeded its time, is still going on.
	Busy bool
	// Err is the reason for the end, usually context.DeadlineExceeded.
	Err error
}

// Error says what happened.
func (e *RenderTimeoutError) Error() string {
	after := e.After.Round(time.Millisecond)
	if e.Busy {
		return fmt.Sprintf("%s: an earlier rendering exceeded its time and is still going on after %s; nothing else is rendered until it ends", e.Generator, after)
	}
	return fmt.Sprintf("%s: rendering was not done after %s: %v", e.Generator, after, e.Err)
}

// Unwrap returns the reason for the end.
func (e *RenderTimeoutError) Unwrap() error { return e.Err }
