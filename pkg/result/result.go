// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package result

import "fmt"

// Result says how far a pass got. An error that comes with it overrules it.
type Result int

const (
	// Empty says nothing: there was nothing to do, or an error says the rest.
	Empty Result = iota
	// Requeue says that the pass made its contribution, but is not finished and
	// wants to go on soon.
	Requeue
	// Success says that everything is as it should be.
	Success
)

// String returns the name.
func (r Result) String() string {
	switch r {
	case Empty:
		return "Empty"
	case Requeue:
		return "Requeue"
	case Success:
		return "Success"
	default:
		return fmt.Sprintf("Result(%d)", int(r))
	}
}

// Lowest combines the results of several parts of a pass: Requeue if a part
// wants to go on, else Success if a part succeeded, else Empty.
func Lowest(results ...Result) Result {
	lowest := Empty
	for _, r := range results {
		switch {
		case r == Requeue:
			return Requeue
		case r == Success:
			lowest = Success
		}
	}
	return lowest
}
