// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

// Stage is what a pass is about.
type Stage string

const (
	// StageIgnore is for objects that are not, or no longer, our concern.
	StageIgnore Stage = "Ignore"
	// StageHold is for objects whose management policy is not known: nothing is
	// done, and the conditions say why.
	StageHold Stage = "Hold"
	// StageClaim is the first pass: Claim and our finalizer become durable, then
	// it goes on like StageApply.
	StageClaim Stage = "Claim"
	// StageSkip is for objects that are suspended, or under the policy Skip: UpdateStatus.
	StageSkip Stage = "Skip"
	// StageApply is the ordinary stage: Claim, CreateOrUpdate.
	StageApply Stage = "Apply"
	// StageDelete is for objects under deletion: Delete.
	StageDelete Stage = "Delete"
	// StageRelease removes our finalizer.
	StageRelease Stage = "Release"
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

// stageOf decides what a pass is about. It answers the handler's Suspended and
// Detached and the management policy alike.
//
// A finalizer is never added to an object under deletion: the server would refuse
// it, and nothing was made for an object that was never claimed. A handler that says
// that nothing is to be deleted is believed whatever the policy: so there is a way
// out of every deletion.
func stageOf(f facts) Stage {
	leave := f.policy == Skip || f.policy == DetachOnDelete
	switch {
	case f.elsewhere:
		return StageIgnore
	case f.deleting && !f.claimed:
		return StageIgnore
	case f.deleting && (f.detached || leave):
		return StageRelease
	case f.policy == "":
		return StageHold
	case f.deleting:
		return StageDelete
	case f.suspended || f.policy == Skip:
		return StageSkip
	case !f.claimed:
		return StageClaim
	default:
		return StageApply
	}
}
