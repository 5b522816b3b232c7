// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package trace starts the spans of OpenTelemetry around the parts of a reconcile.
// Without a tracer provider it costs nothing: no allocation, no attribute that is
// computed in vain.
//
// Only the interfaces of OpenTelemetry are used; exporters and processors are
// set up by the program.
package trace
