// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package report holds the reports of the engine: keys of objects, their waits, notes about them,
// their drift, the clients that changed them, the blockers of a deletion, and plans.
package report
