// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package preview lets a user ask a running operator for its plan for a component. Only the
// operator has the generator, the hooks and the key of the history; the API server is the only way
// to it, and its rights decide who may ask and who may read.
//
// # Protocol
//
// The user who asks
//
//  1. makes a nonce: the time in seconds and 80 random bits;
//  2. for an edited component, creates the Secret corbel-preview-<nonce> beside the component, with
//     the edited object as JSON in the entry "edited". A component without a namespace has its
//     Secrets in the namespace of the operator;
//  3. writes the annotation <name>/preview of the component; see [Request] for its form;
//  4. reads the Secret corbel-preview-<nonce> until it has the entry "answer", an [Answer] as JSON,
//     compressed by gzip.
//
// The operator sees the annotation through the watch of components that it has anyway. It plans,
// creates the Secret, or replaces the content of the Secret of the edited object by the answer. Ten
// minutes later it deletes the Secret and, unless there is another request, the annotation. All Secrets
// have the type <name>/preview, the label <name>/preview-of with the uid of the component, and an owner
// reference to it, so that they do not outlive it. The operator touches no other Secret.
//
// # What holds
//
//   - The annotation is no change of a component: no reconcile follows, no digest covers it, no
//     status is written.
//   - The nonce names the answer, so requests of two users do not mix. The second annotation replaces
//     the first, which the operator has seen by then or, if it was not running, never sees: its
//     user asks again.
//   - An answer is written once: a creation demands that there is none, an update that the Secret is
//     as it was read. So an operator that was deposed, or starts again, does no harm.
//   - A request that is older than ten minutes is not answered. Its age is counted from the nonce
//     only when the operator starts; a change that it sees is new, whatever the clock of its user.
//   - After a crash the annotation leads to the remains: the operator lists the Secrets of a
//     component that has one when it starts. Without the right to list them they stay until the
//     component is gone.
//   - A request costs the plan and at most four more requests; without requests nothing is sent.
//
// # Visibility
//
// Asking takes the right to patch the component, which is also the right to edit it. An edited component is planned only
// if the server admits it in a dry run by the operator: admission policies that depend on the user are not applied. Reading takes the
// right to get Secrets in its namespace. The operator plans with its own rights. So an answer has values
// of objects in the namespace of the answer only; of objects elsewhere, or in another cluster, it
// names the fields that change. Values of Secrets are masked everywhere but in manifests, which are
// whole for objects in the namespace of the answer.
package preview
