// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package revision keeps the revisions in the status of a component: it makes the digests by which they are counted,
// adds them to the history, runs the timeout of the current one, and knows the earlier one that a rollback pins.
package revision
