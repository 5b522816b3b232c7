// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster is how Corbel speaks to a cluster.
//
// A [Target] is a cluster and a user in it. It holds three things:
//
//   - [Objects], a narrow client for objects of any type. It exists because a
//     DELETE has an answer that matters: either the object is gone, or it is
//     still there and waits for its finalizers. Ordinary clients throw this away
//     and have to ask again.
//   - [Types], which knows the types that the server serves. Its answers have three
//     values: served, provably not served ([NotServedError]), and unknown (every
//     other error). Nothing destructive may follow from the last.
//   - an ordinary controller-runtime client, for code that is not ours, such as
//     hooks and generators. It reads from the server, not from a cache.
//
// Nothing here throttles on the client's side; servers have priority and fairness for that. Instead
// every request is bounded: in time, in the size of the answer, in the number of retries and in how
// long a server may make us wait for them. Redirects are not followed. For targets that are named
// by a user who is not trusted, a [DialPolicy] such as [DenyInternal] restricts the addresses of
// connections.
//
// Whether an object is absent needs proof as well. A status of 404 alone is none: it may mean that
// the path is not served, that the namespace does not exist, or that a proxy has lost its way. See
// [IsNotFound].
package cluster
