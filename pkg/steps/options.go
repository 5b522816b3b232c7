// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DefaultLease is how long a lock is its holder's, unless WithLease says otherwise.
const DefaultLease = 5 * time.Minute

// minLease keeps the margin at the end of a lease from being nothing.
const minLease = 100 * time.Millisecond

// LockOption configures a Lock.
type LockOption func(*Lock)

// WithLease sets how long the lock is its holder's. A task that may take longer needs a
// longer one: afterwards any other process may take over. The context of ExecuteContext
// ends a little earlier. Default is DefaultLease, the floor 100 ms.
func WithLease(lease time.Duration) LockOption {
	return func(l *Lock) { l.lease = max(lease, minLease) }
}

// WithHolder says who holds the lock. No two processes that live at the same time may
// have the same, so it should be the uid of the pod: then a process that starts anew
// takes over the locks of its predecessor at once. Default is the name of the host,
// which is not taken to be unique.
func WithHolder(id string) LockOption {
	return func(l *Lock) { l.self.holder, l.self.unique = id, id != "" }
}

// WithReader sets the reader for the look at the server after a conflict. It must not
// be a cache. Default is the client, which reads unstructured objects past its cache
// unless it was told otherwise; if it was, pass the manager's GetAPIReader.
func WithReader(reader client.Reader) LockOption {
	return func(l *Lock) { l.reader = reader }
}

// WithCommit makes the Lock write with the function, which makes the object in memory
// durable or fails: the Commit of pkg/lifecycle, or patch.Helper's. Then there is one
// writer of the object in a pass, and the write at its end meets no conflict. If the release
// fails that way, because somebody changed the object, the Lock writes by itself. Default is
// to write by itself.
func WithCommit(commit func(ctx context.Context) error) LockOption {
	return func(l *Lock) { l.commit = commit }
}

// WithTransient says which errors of a task pass by themselves. After these the condition
// has its former status again, with the error as reason, and not Error. A RetriableError,
// the Waiting of pkg/result, patch.ErrConflict, the LaterError of pkg/lifecycle and the end of the
// context always count as such.
func WithTransient(transient func(error) bool) LockOption {
	return func(l *Lock) { l.transient = transient }
}
