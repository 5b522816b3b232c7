// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package telemetry reports the work of a reconciler: the transitions of components in events and lines of the log, and the work in
// spans and metrics.
package telemetry
