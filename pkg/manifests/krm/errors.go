// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package krm

import (
	"fmt"
	"strings"
)

// ExitError says that a function ended with another exit code than 0.
type ExitError struct {
	// Function says which one.
	Function string
	// Code is the exit code, or -1 if a signal ended it.
	Code int
	// Complaint is the end of what it wrote to its standard error.
	Complaint string
	// Results are the results that it gave nevertheless.
	Results []Result
}

// Error returns the exit code and what the function said.
func (e *ExitError) Error() string {
	text := fmt.Sprintf("%s: it ended with exit code %d", e.Function, e.Code)
	if e.Code < 0 {
		text = e.Function + ": it was ended by a signal"
	}
	if len(e.Results) > 0 {
		text += ": " + listed(e.Results)
	}
	if e.Complaint != "" {
		text += ": " + strings.Join(strings.Fields(e.Complaint), " ")
	}
	return text
}

// ResultError says that a function gave results with the severity error.
type ResultError struct {
	// Function says which one.
	Function string
	// Results are those with the severity error.
	Results []Result
}

// Error returns the results.
func (e *ResultError) Error() string { return e.Function + ": " + listed(e.Results) }

// OutputError says that what a function wrote is no ResourceList.
type OutputError struct {
	// Function says which one.
	Function string
	// Err says what is wrong.
	Err error
}

// Error says what is wrong.
func (e *OutputError) Error() string { return e.Function + ": its output: " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *OutputError) Unwrap() error { return e.Err }

// LimitError says that a function wrote too much.
type LimitError struct {
	// Function says which one.
	Function string
	// Bytes is the limit.
	Bytes int64
}

// Error names the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: it wrote more than %d bytes", e.Function, e.Bytes)
}
