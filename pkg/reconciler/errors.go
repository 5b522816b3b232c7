// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
)

// InvalidError means that the desired objects cannot work as they are: nothing
// was written, and a retry is useless until something changes. The message lists
// every mistake, each with its object.
type InvalidError struct {
	Err error
	// unserved are the types of the objects that the server does not serve.
	unserved []schema.GroupVersionKind
}

// Error returns the list of mistakes.
func (e *InvalidError) Error() string { return e.Err.Error() }

// Unwrap returns the joined mistakes.
func (e *InvalidError) Unwrap() error { return e.Err }

// BreakingChangeError means that a manifest changes a CustomResourceDefinition that exists so that
// objects or clients of its type break, and no annotation allows it. The definition was not written.
type BreakingChangeError struct {
	Err error
}

// Error names the definition and lists the changes.
func (e *BreakingChangeError) Error() string { return e.Err.Error() }

// Unwrap returns the refusal.
func (e *BreakingChangeError) Unwrap() error { return e.Err }

// OwnerConflictError means that an object belongs to another owner, and the
// adoption policy forbids to adopt it.
type OwnerConflictError struct {
	// Object names the object, such as "ConfigMap shop/settings".
	Object string
	// Message names the owner and the policy.
	Message string
	// Policy is the adoption policy of the object.
	Policy v1alpha1.AdoptionPolicy
}

// Error names the object, its owner and the policy.
func (e *OwnerConflictError) Error() string { return e.Object + ": " + e.Message }

// ForbiddenError means that the user has no right to read an object. Nothing is done
// about the object until the right is granted.
type ForbiddenError struct {
	// Object names the object, such as "ConfigMap shop/settings".
	Object string
	// Message is the answer of the server.
	Message string
}

// Error names the object and repeats the answer of the server.
func (e *ForbiddenError) Error() string { return e.Object + ": " + e.Message }

// HookFailedError means that an object that runs before or after the deletion reports a failure.
// The deletion waits for it.
type HookFailedError struct {
	// Object names the object, such as "Job shop/backup".
	Object string
	// Message is the message of the object's status.
	Message string
}

// Error names the object and repeats its message.
func (e *HookFailedError) Error() string {
	return e.Object + ", on which the deletion waits, has failed: " + e.Message
}

// TargetChangedError means that the inventory was recorded for another cluster than the target
// reaches now. Nothing was read or written.
type TargetChangedError struct {
	// Recorded and Actual identify the clusters by the uid of their namespace kube-system,
	// or by URL and certificate authority where that may not be read.
	Recorded, Actual string
}

// Error names both clusters.
func (e *TargetChangedError) Error() string {
	if cluster.IsAddress(types.UID(e.Actual)) && !cluster.IsAddress(types.UID(e.Recorded)) {
		return "the dependent objects live in the cluster " + e.Recorded + ", and whether the target " + e.Actual +
			" is that cluster is not known; grant its user the right to get the namespace kube-system: its uid identifies the cluster"
	}
	return "the dependent objects live in the cluster " + e.Recorded + ", but the target is the cluster " + e.Actual +
		"; point the target back to where they live"
}

// UnidentifiedTargetError means that the target answers, but cannot be identified: it refuses
// the user, or is no API server. Nothing was read or written.
type UnidentifiedTargetError struct {
	// Server is the URL of the target.
	Server string
	// Err is the server's error.
	Err error
}

// Error names the server.
func (e *UnidentifiedTargetError) Error() string {
	return "the cluster at " + e.Server + " cannot be identified: " + e.Err.Error()
}

// Unwrap returns the server's error.
func (e *UnidentifiedTargetError) Unwrap() error { return e.Err }

// SupersededError means that it could not be confirmed that the owner is still as in the request
// and that it is for this process to act. Nothing was created after that. Read the owner again
// before the next call.
type SupersededError struct {
	// Err is the error of the function Confirm of the request.
	Err error
}

// Error explains why nothing more is created.
func (e *SupersededError) Error() string {
	return "nothing more is created, because the owner could not be confirmed: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *SupersededError) Unwrap() error { return e.Err }
