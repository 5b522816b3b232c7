// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package metered runs Go templates that may come from people who do not own
// the operator. It is text/template with a meter: everything that a template
// prints, calls and builds is counted, and what exceeds a limit ends as a
// LimitError, before the memory or the stack is used up.
//
// A template is parsed by a Parser, which rewrites it so that it passes through
// functions of this package at every output, call and round of a loop. A Scope
// is a set of such templates together with the meter of one rendering.
//
// text/template cannot be interrupted from outside. A rendering ends at the next
// of these functions after its time is over; see package bounded for one that
// does not get there.
package metered
