// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package revisions keeps what belongs to the revisions of a component and must not be seen, in a
// Secret beside the component: the random values of the manifests of the current revision, and the
// manifests of the last revisions, for rollbacks.
//
// The content is sealed: compressed, and encrypted with AES-256 in Galois/Counter Mode. The key
// is derived from one that only the operator has, and the seal is bound to the component, the
// number of the revision and the digest of what it is rendered from. So a user who may read
// and write Secrets in the namespace of the component learns nothing from the content, and
// content that was changed or copied from elsewhere does not open. A user who may also write
// the status can put back what was sealed for an earlier revision of the same component,
// if that was rendered from the same as the current one. The manifests are sealed together; the
// status has a digest of those of each revision, made with the same key.
//
// The garbage collector deletes the Secret with the component. If it is lost, no object is
// lost: what it holds is made anew.
package revisions
