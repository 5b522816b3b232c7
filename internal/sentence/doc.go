// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package sentence makes texts of any origin fit into a message of bounded length, into a command for a shell, and onto a
// terminal.
package sentence
