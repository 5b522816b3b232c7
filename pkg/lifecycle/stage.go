// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

// Stage is what a pass is about.
type Stage string

const (
	// StageIgnore is for objects that are no longer our concern.
	StageIgnore Stage = "Ignore"
	// StageClaim is the first pass: Claim and our finalizer become durable, then
	// it goes on like StageApply.
	StageClaim Stage = "Claim"
	// StageSkip is for suspended objects: UpdateStatus.
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
	deleting  bool // deletion was asked for
	claimed   bool // our finalizer is there
	suspended bool // nothing may be created or updated
	detached  bool // deletion leaves behind what was made
}

// stageOf decides what a pass is about. A finalizer is never added to an object
// under deletion: the server would refuse it, and nothing was made for an object
// that was never claimed.
func stageOf(f facts) Stage {
	switch {
	case f.deleting && !f.claimed:
		return StageIgnore
	case f.deleting && f.detached:
		return StageRelease
	case f.deleting:
		return StageDelete
	case f.suspended:
		return StageSkip
	case !f.claimed:
		return StageClaim
	default:
		return StageApply
	}
}
