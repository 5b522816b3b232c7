// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package templates runs text/template with limits, for templates and values of authors who do not
// own the operator: tenants write templates through the function tpl. The output, the calls and the
// values of a template are counted, and a template that exceeds a limit ends with an excess.Error.
// It must not come to more than an error: neither a full memory nor an overflow of the stack can be
// recovered from.
//
// A Parser parses a template and rewrites its tree, so that every output, every call
// and every round of a loop passes through functions of this package. A Rendering
// executes a set of such templates. Each function that a template calls has a guard,
// which looks at the arguments before the call and at the result after it.
//
// text/template cannot be interrupted from outside. A rendering ends at the next of
// these functions after its context has ended; package timeout is for a rendering that
// does not get there.
package templates
