// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

// Phase is what a pass is about.
type Phase string

const (
	// PhaseIgnore is for objects that are not, or no longer, our concern.
	PhaseIgnore Phase = "Ignore"
	// PhasePaused is for objects whose management policy is not known: nothing is
	// done, and the conditions say why.
	PhasePaused Phase = "Paused"
	// PhaseClaim is the first pass: Claim and our finalizer become durable, then
	// it goes on like PhaseApply.
	PhaseClaim Phase = "Claim"
	// PhaseSkip is for objects that are suspended, or under the policy Skip: UpdateStatus.
	PhaseSkip Phase = "Skip"
	// PhaseApply is the ordinary stage: Claim, CreateOrUpdate.
	PhaseApply Phase = "Apply"
	// PhaseDelete is for objects under deletion: Delete.
	PhaseDelete Phase = "Delete"
	// PhaseRelease removes our finalizer.
	PhaseRelease Phase = "Release"
)

// facts are all that the stage depends on.
type facts struct {
	elsewhere bool             // the object belongs to another operator
	deleting  bool             // deletion was asked for
	claimed   bool             // our finalizer is there
	suspended bool             // the handler says that nothing may be created or updated
	detached  bool             // the handler says that deletion leaves behind what was made
	policy    ManagementPolicy // empty if it is not known what may be done
}

// phaseOf decides what a pass is about. It answers the handler's Suspended and
// Detached and the management policy alike.
//
// A finalizer is never added to an object under deletion: the server would refuse
// it, and nothing was made for an object that was never claimed. A handler that says
// that nothing is to be deleted is believed whatever the policy: so there is a way
// out of every deletion.
func phaseOf(f facts) Phase {
	leave := f.policy == Skip || f.policy == DetachOnDelete
	switch {
	case f.elsewhere:
		return PhaseIgnore
	case f.deleting && !f.claimed:
		return PhaseIgnore
	case f.deleting && (f.detached || leave):
		return PhaseRelease
	case f.policy == "":
		return PhasePaused
	case f.deleting:
		return PhaseDelete
	case f.suspended || f.policy == Skip:
		return PhaseSkip
	case !f.claimed:
		return PhaseClaim
	default:
		return PhaseApply
	}
}
