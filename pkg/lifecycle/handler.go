// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/result"
)

// Commit makes the metadata and the status of the object durable. Call it before
// acting on anything outside the object, and act only if it returns nil. Return
// its error, wrapped or not: the loop knows what to make of it. When somebody
// changed the object meanwhile, the pass ends quietly and comes again; when the
// CustomResourceDefinition does not keep the status, the object becomes Stalled.
type Commit func(ctx context.Context) error

// Handler does the work of one kind of object. All methods are idempotent. They
// may change metadata and status of obj in memory; the loop writes them. No two
// calls for one object run at the same time.
//
// The answer of the API server that obj itself has changed (Conflict) or does not exist any more
// (NotFound), wrapped or not, ends the reconcile quietly: the object is reconciled again after
// a conflict, and left alone after its deletion.
type Handler[T client.Object] interface {
	// Claim prepares an object before CreateOrUpdate, in every pass. What it
	// changes in metadata is durable before CreateOrUpdate runs; in the pass that
	// puts our finalizer on the object, its changes of status are, too. An error
	// ends the pass.
	Claim(ctx context.Context, obj T) error
	// CreateOrUpdate brings what the object describes into being. Empty without an
	// error means that nothing was to be done: an
	// object that is not Ready becomes so, as after Success.
	CreateOrUpdate(ctx context.Context, obj T, commit Commit) (result.Result, error)
	// Delete takes it away. Only Success with a nil error means that nothing is
	// left; then our finalizer goes.
	Delete(ctx context.Context, obj T, commit Commit) (result.Result, error)
	// UpdateStatus only looks. It is called in place of CreateOrUpdate while
	// the object is suspended or under the policy Skip.
	UpdateStatus(ctx context.Context, obj T) error
}

// Suspender is a Handler that can be told to let an object rest. Deletion is not
// affected.
type Suspender[T client.Object] interface {
	// Suspended reports whether nothing may be created or updated now.
	Suspended(obj T) bool
}

// Detacher is a Handler that can be told to leave behind what it made, in addition
// to the management policy.
type Detacher[T client.Object] interface {
	// Detached reports whether deletion of the object skips Delete.
	Detached(obj T) bool
}

// Releaser is a Handler that keeps something else for an object that must not
// outlive it.
type Releaser[T client.Object] interface {
	// Release is called right before our finalizer is removed, whether the object
	// was deleted by Delete or is left as it is. An error keeps the finalizer.
	// It may be called more than once.
	Release(ctx context.Context, obj T) error
}

// Finisher is a Handler that keeps something about objects in memory.
type Finisher interface {
	// Finished says that the object is gone, or not the concern of this process any
	// more: it was handed to another operator, or is being deleted and does not bear
	// our finalizer. It may be called more than once, and for objects that the
	// handler never saw.
	Finished(ctx context.Context, key client.ObjectKey)
}
