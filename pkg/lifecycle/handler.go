// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/result"
)

// Commit makes the metadata and the status of the object durable. Call it before
// acting on anything outside the object, and act only if it returns nil. Return its error,
// wrapped or not. If the object was changed meanwhile, the reconcile ends without a verdict
// and the object is requeued; if the CustomResourceDefinition does not keep the status, the
// object becomes Stalled.
type Commit func(ctx context.Context) error

// Handler does the work of one kind of object. All methods are idempotent. They
// may change metadata and status of obj in memory; the Reconciler writes them. No two
// calls for one object run at the same time.
//
// The answer of the API server that obj itself has changed (Conflict) or does not exist any more
// (NotFound), wrapped or not, ends the reconcile quietly: the object is reconciled again after
// a conflict, and left alone after its deletion.
type Handler[T client.Object] interface {
	// Claim prepares an object before CreateOrUpdate, in every reconcile. Its changes of metadata
	// are durable before CreateOrUpdate runs; in the reconcile that puts our finalizer on the
	// object, its changes of status are, too. An error ends the reconcile.
	Claim(ctx context.Context, obj T) error
	// CreateOrUpdate creates or updates the resource of the object. Empty without an error means
	// that nothing was to be done: an object that is not Ready becomes so, as after Success.
	CreateOrUpdate(ctx context.Context, obj T, commit Commit) (result.Result, error)
	// Delete deletes the resource of the object. Only Success with a nil error means that nothing
	// is left; then our finalizer is removed.
	Delete(ctx context.Context, obj T, commit Commit) (result.Result, error)
	// UpdateStatus only looks. It is called in place of CreateOrUpdate while
	// the object is suspended or under the policy skip.
	UpdateStatus(ctx context.Context, obj T) error
}

// Suspender is a Handler of objects that can be suspended. Deletion is not affected.
type Suspender[T client.Object] interface {
	// Suspended reports whether nothing may be created or updated now.
	Suspended(obj T) bool
}

// Orphaner is a Handler of objects that can ask, in addition to the management policy, to orphan
// their resources.
type Orphaner[T client.Object] interface {
	// Orphaned reports whether deletion of the object skips Delete.
	Orphaned(obj T) bool
}

// Finalizer is a Handler that keeps something else for an object, which must not outlive it.
type Finalizer[T client.Object] interface {
	// Finalize is called right before our finalizer is removed, whether Delete has deleted the
	// resource or it is orphaned. An error keeps the finalizer. It may be called more than once.
	Finalize(ctx context.Context, obj T) error
}

// Forgetter is a Handler that keeps something about objects in memory.
type Forgetter interface {
	// ForgetObject is called when the object is gone or does not belong to this process any
	// more: it was handed to another operator, or is being deleted and does not bear our
	// finalizer. It may be called more than once, and for objects that the handler never saw.
	ForgetObject(ctx context.Context, key client.ObjectKey)
}
