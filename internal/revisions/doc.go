// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package revisions keeps what belongs to a revision of a component and must not be seen, such
// as the random values of its manifests, in a Secret beside the component.
//
// The content is sealed: compressed, and encrypted with AES-256 in Galois/Counter Mode. The key is derived from a
// key that only the operator has, and the seal is bound to the component, the number of the
// revision and the digest of what it is rendered from. So a user who may read and write
// Secrets in the namespace of the component learns nothing from the content, and content that was changed or
// copied from elsewhere does not open. Only content that was sealed for the same revision
// of the same component can be put back.
//
// The Secret is deleted by the garbage collector with the component. Losing it loses no
// object: what it holds is made anew.
package revisions
