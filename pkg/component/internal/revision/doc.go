// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package revision counts the revisions of a component in its status: which one is applied, which one its spec leads
// to, and which one it is pinned to by a rollback.
package revision
