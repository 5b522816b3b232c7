// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package digest answers three questions about an object without keeping the object.
//
//   - Is the manifest still the same? (Manifest)
//   - Did anything but the status change on the live object? (ObservedHash)
//   - Did anything change that the manifest asks for? (AppliedHash)
//
// ObservedHash is cheap to compare and changes with every foreign field, so a new one is only a
// hint. AppliedHash decides: it covers the live values at the paths that the manifest sets, as the
// server answered them, and which of its maps are there. Defaults, changes of webhooks to our
// values, the replicas set by an autoscaler, annotations and list elements of other clients are all
// in the first answer or outside of these paths, so none of them is drift.
//
// Objects are JSON-like: map[string]any, []any, string, bool, nil and numbers. Equal JSON gives
// equal digests, whatever Go type a number came in.
//
// Digests over objects that hold secrets can be guessed by a reader that knows most of the object;
// a Hasher with a key prevents that.
package digest
