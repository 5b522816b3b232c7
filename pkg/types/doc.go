// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package types holds the small interfaces and errors that generators, hooks and
// reconcilers share: what parameters look like (Unstructurable), how to ask for a
// retry after a delay (RetriableError), what a panic becomes (PanicError), whether an
// answer proves that an object is gone (IsGone), and how to bring additional types into
// a client (SchemeBuilder).
package types
