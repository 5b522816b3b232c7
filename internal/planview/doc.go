// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package planview shows plans to people and programs: as text, as a table of several components,
// and as an exit code. It decides nothing and reads nothing.
package planview
