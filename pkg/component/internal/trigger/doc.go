// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package trigger adds components to the queue of a controller for other reasons than a change
// of the component itself.
//
// It decides between a full reconcile and the fast path: a reconcile uses the fast path if
// nothing but dependents of the component caused it.
package trigger
