// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package trace starts the spans of OpenTelemetry around what a pass does. It is
// off unless somebody sets a tracer provider, and then costs nothing: no
// allocation, no attribute that is computed in vain.
//
// Only the interfaces of OpenTelemetry are used; exporters and processors are
// the business of the program.
package trace
