// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package trigger feeds the queue of a controller with the components that something else
// than a change of their own makes reconcile.
//
// It decides between a full reconcile and the fast path: a reconcile takes the fast path if
// nothing but dependents of the component caused it.
package trigger
