// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package telemetry reports the work of a reconciler: the transitions of components in events and
// lines of the log, and the work in spans and metrics.
//
// An [Activity] collects the steps for a component over the reconciles, so that an installation in
// many waves is one event and one line. Secrets that a reconcile has read are kept out of all that
// it reports.
package telemetry
