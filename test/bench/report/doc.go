// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package report holds what was measured, and shows it: as JSON to be kept, as
// tables for the documentation, and as a chart. It measures nothing.
package report
