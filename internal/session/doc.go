// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package session is one reconcile of an object with a finalizer: it reads the object, finds out
// to which operator it belongs and what may be done about it, decides about the phase by a pure
// function, puts the finalizer on the server before anything else happens, takes it away after
// everything is gone, and writes the status at most once. The Reconciler of pkg/lifecycle has a
// Handler that does the work; a reconciler that words the conditions itself, or decides itself
// when an object is reconciled again, uses [Sessions] directly.
package session
