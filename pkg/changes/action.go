// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

// ReconcileAction says what happened to an object.
type ReconcileAction string

const (
	// ReconcileActionUnknown is the zero value. No reconciler is called with it.
	ReconcileActionUnknown ReconcileAction = ""
	// ReconcileActionCreated is for an object that was not handled successfully
	// before: by this process or, with an opinionated reconciler, by any.
	ReconcileActionCreated ReconcileAction = "Created"
	// ReconcileActionUpdated is for an object that changed since this process
	// handled it successfully.
	ReconcileActionUpdated ReconcileAction = "Updated"
	// ReconcileActionDeleted is for an object that is being deleted (opinionated), or
	// that is gone (plain, or if our finalizer was taken away).
	ReconcileActionDeleted ReconcileAction = "Deleted"
	// ReconcileActionResynced is for an object that was handled before and of which
	// no change is known: after a restart, and periodically. It may have changed while
	// no process was there to see it.
	ReconcileActionResynced ReconcileAction = "Resynced"
)

// ResourceAction is the verb of an API server for what happened to an object.
type ResourceAction string

// The verbs that have a ReconcileAction.
const (
	ResourceActionCreate ResourceAction = "CREATE"
	ResourceActionUpdate ResourceAction = "UPDATE"
	ResourceActionDelete ResourceAction = "DELETE"
)

// ResourceActionFromReconcile returns the verb that led to the action. It is empty
// for ReconcileActionResynced, which no verb leads to, and for what is no action.
func ResourceActionFromReconcile(action ReconcileAction) ResourceAction {
	switch action {
	case ReconcileActionCreated:
		return ResourceActionCreate
	case ReconcileActionUpdated:
		return ResourceActionUpdate
	case ReconcileActionDeleted:
		return ResourceActionDelete
	default:
		return ""
	}
}

// ReconcileActionFromResource returns the action that a verb leads to, or
// ReconcileActionUnknown.
func ReconcileActionFromResource(action ResourceAction) ReconcileAction {
	switch action {
	case ResourceActionCreate:
		return ReconcileActionCreated
	case ResourceActionUpdate:
		return ReconcileActionUpdated
	case ResourceActionDelete:
		return ReconcileActionDeleted
	default:
		return ReconcileActionUnknown
	}
}
