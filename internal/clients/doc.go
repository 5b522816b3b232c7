// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package clients makes and keeps the targets that components are deployed to.
//
// A target costs connections and remembers the types of its server, so there is
// one for each identity and not one for each component: the operator's own in
// the local cluster, one for each user that components let it impersonate, and
// one for each kubeconfig and user. What nobody used for a while is closed.
//
// The local cluster is there, or the operator could not work at all. Clusters of
// kubeconfigs may be anything: gone, slow, or hostile. Whoever works for a
// component is one of few, so nobody ever waits for such a cluster here:
//
//   - [Pool.Enter] never blocks and sends nothing. A cluster is used only after
//     a probe in the background has shown that it answers, and that it is still
//     the same one.
//   - The end of a watch that we did not end withdraws the proof: what the next one
//     tells may be about another cluster, so nobody enters before the next probe.
//   - A failed request ends the trust. The cluster is probed, with pauses of
//     at most half a minute, until it answers again; whoever was turned away is
//     woken then.
//   - Few may use such a cluster at the same time, so one that begins to hang
//     takes few with it.
package clients
