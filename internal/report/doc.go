// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package report holds what the engine reports: keys of objects, what they wait for, notes about
// them, how they drifted, who changed them, what blocks a deletion, and plans.
package report
