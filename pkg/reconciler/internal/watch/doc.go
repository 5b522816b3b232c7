// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package watch keeps a small record of every object that has our owner label, in one cluster and
// as one user sees it, so that a reconcile of thousands of objects sends no request, and so that a
// change notifies exactly the owners that it concerns.
//
// Reflectors keep the records up to date, one for each type: for the whole cluster where that is
// allowed, else one for each namespace that is needed. Where even that is forbidden nothing is
// watched, and callers read; it is tried again later. Objects are reduced when they arrive and
// nothing else of them is kept, so the values of Secrets do not stay in memory.
//
// The answers to our own writes go into the same records, ordered by resourceVersion: a plan always
// sees its last write, however late the watch is. The echo of a write notifies no owner.
//
// A record is an observed state. The lack of a record proves nothing: an object that lost its label
// has left the watch, too. The store never reports that an object is absent.
package watch
