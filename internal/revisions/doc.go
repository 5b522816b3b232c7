// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package revisions keeps data of the revisions of a component that must not be seen, in a Secret
// beside the component: the random values of the manifests of the current revision, and the
// manifests of the last revisions, for rollbacks.
//
// The content is sealed: compressed, and encrypted with AES-256 in Galois/Counter Mode. The key is
// derived from a key that only the operator has, and the seal is bound to the component, the number
// of the revision and the digest of its sources. So a user who may read and write Secrets in the
// namespace of the component learns nothing from the content, and content that was changed or
// copied from elsewhere does not open. A user who may also write the status can put back content
// that was sealed for an earlier revision of the same component, if that was rendered from the same
// sources as the current one. The manifests are sealed together; the status has a digest of the
// manifests of each revision, made with the same key.
//
// The garbage collector deletes the Secret with the component. If it is lost, no object is lost:
// its content is made anew.
package revisions
