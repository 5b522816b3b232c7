// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package vocabulary

// How the work of an object has ended.
const (
	// FinishComplete: the work is done. When the object is gone it is in
	// PhaseCompleted.
	FinishComplete = "Complete"
	// FinishFailed: the work has failed. When the object is gone it is created again.
	FinishFailed = "Failed"
)

// Where a dependent object is in its life.
const (
	// PhaseApplied is the ordinary phase: the object is desired and is, or is
	// about to be, on the server.
	PhaseApplied = ""
	// PhaseCompleting means that the object did its work and is being purged.
	// It is recorded before the deletion starts, so that a crash in between
	// does not create the object a second time.
	PhaseCompleting = "Completing"
	// PhaseCompleted means that the object was purged, or completed and was removed
	// by its time to live; it is not created again while its manifest is unchanged.
	PhaseCompleted = "Completed"
	// PhaseRecreating means that the object of the recorded uid is being
	// deleted to be created again. It is recorded before the deletion starts,
	// so that a crash in between does not do it twice.
	PhaseRecreating = "Recreating"
	// PhaseReleased means that another owner has taken over the object. It is not
	// touched as long as the recorded uid exists.
	PhaseReleased = "Released"
)

// Where a dependent object comes from.
const (
	// OriginManifest is an object that the generator rendered.
	OriginManifest = ""
	// OriginNamespace is a namespace that was created because objects live in
	// it and no manifest brings it.
	OriginNamespace = "Namespace"
)
