// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"errors"
	"fmt"
	"time"

	"github.com/corbel-run/corbel/pkg/types"
)

// LockNotReleasedErr means that the task did not give the condition a final status.
// It is found in a LockHeldError, too.
//
//lint:ignore ST1012 the name is that of the documented API
var LockNotReleasedErr = errors.New("Condition's lock was not released")

// NotInitializedConditionsErr means that there are no conditions to work on: a nil
// pointer, or a method Conditions with a value receiver, which returns those of a copy.
//
//lint:ignore ST1012 the name is that of the documented API
var NotInitializedConditionsErr = errors.New("Conditions is not initialized")

// ErrLockLost means that the step belongs to somebody else when the task ends: the lease
// ran out and another process took over, or somebody changed the condition. Nothing
// was written; what the task made is not on record.
var ErrLockLost = errors.New("the lock on the condition was lost while the task ran")

// LockHeldError means that the task did not run because somebody else holds the lock.
// For pkg/result it is a wait of RetryAfter. It is LockNotReleasedErr for errors.Is.
type LockHeldError struct {
	// Type is the condition.
	Type ConditionType
	// Holder is who holds the lock; empty if there is no record of it.
	Holder string
	// Since is when the lease began.
	Since time.Time
	// RetryAfter is when it ends at the latest.
	RetryAfter time.Duration
}

// Error says who holds the lock, and for how long at most.
func (e *LockHeldError) Error() string {
	holder := e.Holder
	if holder == "" {
		holder = "an unknown holder"
	}
	return fmt.Sprintf("condition %s is locked by %s since %s; it will be free in %s at the latest",
		e.Type, holder, e.Since.UTC().Format(time.RFC3339), e.RetryAfter.Round(time.Second))
}

// Unwrap makes the error a RetriableError, and LockNotReleasedErr.
func (e *LockHeldError) Unwrap() error {
	return types.NewRetriableError(LockNotReleasedErr, &e.RetryAfter)
}
