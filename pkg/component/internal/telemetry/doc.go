// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package telemetry reports what a reconciler does: the transitions of components in events
// and lines of the log, and the work in spans and metrics.
//
// An [Activity] collects over the reconciles what was done for a component, so that an
// installation in many waves is one event and one line. Secrets that a reconcile has met are
// kept out of all that it reports.
package telemetry
