// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package target makes and caches the clients of the target clusters that components
// are deployed to.
//
// A client costs connections and caches the types of its server, so there is one for
// each cluster and user and not one for each component: the operator itself in the
// local cluster, one for each user that components let it impersonate, and one for each
// kubeconfig and user. A client that is unused for a while is closed.
//
// Without the local cluster the operator cannot work at all. The cluster of a kubeconfig
// may be gone, slow or hostile, so no reconcile waits for it here:
//
//   - [Pool.Acquire] neither blocks nor sends a request. A remote cluster is used after
//     a probe in the background has verified that it answers, and that it is still the
//     same cluster.
//   - The end of a watch that the operator did not end invalidates the verification:
//     the next watch may report about another cluster. So does a failed request. The
//     cluster is probed again before it is used again, with a back-off of at most half
//     a minute while it does not answer.
//   - The number of components that use one remote cluster at the same time is limited,
//     so a cluster that stops answering holds few workers.
//   - Components that were turned away are requeued when it is worth it.
package target
