// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package patch makes changes of an object durable.
//
// A [Helper] keeps a copy of the object as it was read. The caller changes it in memory, and calls
//
//   - [Helper.Commit] before acting on the outside world: the intent that status
//     and metadata express is on the server when Commit returns nil, complete,
//     and no other client changed the object meanwhile;
//   - [Helper.Patch] at the end of the reconcile.
//
// Both send JSON merge patches that hold only the changed fields, with the resourceVersion as
// precondition: metadata (and spec) in one request, status in another one through the status
// subresource. If nothing changed, nothing is sent. Status fields that the Go type does not know
// survive.
//
// # Conflicts
//
// A conflict is answered by one look at the server. If the object is the same (uid), no client
// asked for something else (generation, deletionTimestamp), and the fields that we are about to
// write still are as we saw them, then the change is sent again, at most five times. For Commit the
// annotations must be the same, too: one of them may forbid any change. Otherwise the error is
// [ErrConflict]: the decisions rest on an old state, so the reconcile ends without an error and the
// next one decides again.
//
// # Outdated definitions
//
// An API server drops status fields that the schema of a CustomResourceDefinition lacks, without an
// error; and without the status subresource there is no way to write status separately. A record
// that is thought to be durable and is not would be fatal, so the answer is compared with the
// request, and the errors [PrunedError] and [NoStatusSubresourceError] explain the remedy.
//
// # The object in memory
//
// After a write the object carries the new metadata, and status as the server
// has it. The spec is never touched, so values that were loaded into it and are
// not serialised survive.
package patch
