// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package inventory keeps inventories that are too large for the status of a component.
//
// A small inventory stays in the status. A large one is divided into chunks: each item belongs to the
// chunk that its key hashes to, so that a change of one object is the write of one chunk. An entry is
// the content of a chunk at one moment, under a key of a Secret. The Secrets of one inventory are a set,
// and sets are numbered: the number is their generation. The status holds the head: the set, and for each
// chunk the key of its entry and the hash of its content.
//
// # Order of writes
//
// A changed chunk gets a new entry beside the entry that the head names; then the head is written;
// the next change removes superseded entries. A new set, which is needed when the number of chunks
// changes or a Secret is lost, starts with a higher generation in the head, so that the status
// names a set before its Secrets exist; then the Secrets are created, the head is written, and
// the Secrets of the old set are removed. So every write of the head moves the inventory from one
// state to the next, and a crash in between leaves the state before.
//
// Only the write of the head decides between two processes: it has the
// resourceVersion of the component as its precondition. The process that loses it cannot harm the
// winner: entries that might still become part of a head are removed only after the head was
// written once more.
//
// # Deletion
//
// The Secrets have a finalizer of ours, so the garbage collector and the namespace controller
// cannot remove them while the component is being deleted; the rest of the inventory is kept by
// updates of the Secrets, which a terminating namespace allows. They are erased right before the
// component's own finalizer is removed.
package inventory
