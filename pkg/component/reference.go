// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A spec may hold references: values of the types ConfigMapReference,
// ConfigMapKeyReference, SecretReference and SecretKeyReference, and of any type
// that implements Reference. They are found wherever they are: in nested and embedded
// structs, behind pointers, in slices and maps; not in unexported fields, nor in those
// with the tag `json:"-"`. A reference that is optional is a pointer that may be nil.
//
// In every pass, before hooks and generator run, references are loaded from the
// namespace of the component with the identity of the operator, past all caches.
// The spec that hooks and generator get has them loaded. What was loaded is part of
// the digest of the component and is never written into it.
//
// While something that is referenced does not exist, the component waits, and its
// condition names everything that is missing. When the component is being deleted,
// it does not: hooks find the reference not loaded then.
//
// Tags of the field that holds a reference, or a slice or map of them, say more:
//
//   - fallbackKeys:"a,b": the keys to try, in this order, if the reference names none.
//   - notFoundPolicy:"waitOnDeletion": the deletion waits, too. The default is "ignoreOnDeletion".
//   - digest:"ignore": what is loaded is not part of the digest of the component. It is for
//     credentials of the operator itself, whose rotation is no change of the component.
const (
	fallbackKeysTag   = "fallbackKeys"
	notFoundPolicyTag = "notFoundPolicy"
	digestTag         = "digest"

	ignoreOnDeletion = "ignoreOnDeletion"
	waitOnDeletion   = "waitOnDeletion"
	ignoreInDigest   = "ignore"
)

// Reference is a reference of a component's own making, for components of type T.
// Pointers to values in the spec that implement it are loaded like the
// references of this package.
type Reference[T Component] interface {
	// Load loads what is referenced and keeps it in the receiver; it changes
	// nothing else. The component has the references of this package loaded
	// already. The client has the identity of the operator and reads from the server.
	//
	// A NotFound error of the API server makes the component wait, or is ignored if the
	// component is being deleted. What is kept has to survive DeepCopy, and its
	// fields need the tag `json:"-"`, also if they are not exported.
	Load(ctx context.Context, clnt client.Client, component T) error
	// Digest returns another value when what was loaded is another content.
	Digest() string
}
