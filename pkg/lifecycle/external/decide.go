// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external

// action is the action of a reconcile on the resource.
type action string

const (
	// actNothing: it is as it should be, or gone if it should be.
	actNothing action = "Nothing"
	// actCreate: record a new token, and create.
	actCreate action = "Create"
	// actRepeat: create again with the token on record.
	actRepeat action = "Repeat"
	// actUpdate: bring it up to date.
	actUpdate action = "Update"
	// actDelete: delete it.
	actDelete action = "Delete"
	// actAwait: the API is at work.
	actAwait action = "Await"
	// actWait: a Create may still take effect; observe again when it cannot any more.
	actWait action = "Wait"
)

// facts are all that the action depends on.
type facts struct {
	deleting      bool
	phase         Phase // of the record
	exists        bool  // false if there is no record: then it was not looked for
	upToDate      bool
	inProgress    bool
	expired       bool // no Create can take effect, or become visible, any more
	notIdempotent bool
}

// decide returns the action. It is pure; the table of its test is the specification.
//
// Absence means two things: as long as a Create may take effect, that the observation may have been
// too early; afterwards, that there is no resource. To create again too early is harmless only if
// the API knows the token; to rely on absence too early would leak a resource that appears after
// the object is gone, or after a new token was drawn.
func decide(f facts) action {
	switch {
	case f.deleting && f.phase == "":
		return actNothing
	case f.deleting && f.exists:
		return actDelete
	case f.deleting && f.expired:
		return actNothing
	case f.deleting:
		return actWait
	case f.phase == "":
		return actCreate
	case f.exists && f.inProgress:
		return actAwait
	case f.exists && !f.upToDate:
		return actUpdate
	case f.exists:
		return actNothing
	case f.phase == PhaseCreating && (f.expired || !f.notIdempotent):
		return actRepeat
	case f.phase != PhaseCreating && f.expired:
		return actCreate
	default:
		return actWait
	}
}
