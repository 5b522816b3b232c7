// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// planDesired decides about one desired object that may be written now: it plans a write, notes the
// reason to wait, or finds the object settled.
func (w *work) planDesired(u *unit) {
	if u.isSharedType() {
		w.awaitShared(u)
		return
	}
	if u.failure != nil && !w.mustRecreate(u) {
		w.noteFailure(u)
		w.wait(u, failureReason(*u.failure), u.failure.Message)
		return
	}
	if u.hookCompleted() {
		u.settled = true
		return
	}
	if u.becameHook && u.live.known() {
		w.convertToHook(u)
		if u.writeBlocked {
			return
		}
	}
	if w.settleExpired(u) || w.settleDeleted(u) || w.ignoreUnowned(u) {
		return
	}
	if u.isNotStored() && u.live.Existence == Present && u.live.UID == "" {
		w.blockWrite(u)
		w.wait(u, report.WaitError, "the server has answered the creation without a uid: it keeps no such object, which must be removed from the manifests")
		return
	}
	switch u.live.Existence {
	case Absent:
		w.applyAbsent(u)
	case NotFetched:
		w.applyNotFetched(u)
	case Present:
		w.applyPresent(u)
	default:
		w.waitUnknown(u)
	}
}

// isSharedType reports whether all components share the object, so that no plan writes it.
func (u *unit) isSharedType() bool { return u.desired != nil && u.desired.Shared }

// awaitShared waits for a type that all components share. If it could not be written, later objects
// wait.
func (w *work) awaitShared(u *unit) {
	switch {
	case u.failure != nil:
		u.blockedByFailure = true
		w.blockWrite(u)
		w.wait(u, failureReason(*u.failure), u.failure.Message)
	case u.live.Existence != Present:
		w.waitUnknown(u)
	case !u.live.DeletionTimestamp.IsZero():
		w.blockWrite(u) // it is created again
		w.wait(u, report.WaitGone, terminating(u.live))
	case u.live.Status.Readiness == Ready:
		u.settled = true
	default:
		w.wait(u, report.WaitReady, u.live.Status.Message)
	}
}

func failureReason(f Failure) report.WaitReason {
	if f.Blocked {
		return report.WaitBlocked
	}
	return report.WaitError
}

func (w *work) waitUnknown(u *unit) {
	w.blockWrite(u)
	if u.live.NotServed {
		w.wait(u, report.WaitType, "the type is not served yet")
		return
	}
	w.waitNotRead(u)
}

func (w *work) waitNotRead(u *unit) {
	reason := report.WaitUnknown
	if u.live.Forbidden {
		reason = report.WaitForbidden
	}
	w.wait(u, reason, cmp.Or(u.live.Message, "not read yet"))
}

func (w *work) applyAbsent(u *unit) {
	switch {
	case u.isFinished():
		u.markFinished()
	case w.namespaceTerminating(u.key.Namespace) && u.runsOnDelete():
		// The namespace may wait for the owner, so the owner must not wait for it.
		w.note(u.key, "", "is not run, because namespace %s is being deleted", u.key.Namespace)
		u.settled = true
	case w.namespaceTerminating(u.key.Namespace):
		w.waitNamespace(u)
	default:
		if c, conflicting := w.conflict(u); conflicting && u.wasDeleted() {
			w.blockWrite(u)
			w.waitConflict(u, c)
			return
		}
		reason := ReasonMissing
		if u.item.Phase == vocabulary.PhaseRecreating {
			reason = ReasonRecreate
		}
		w.write(u, VerbCreate, reason)
	}
}

// applyNotFetched creates an object that was not fetched: if it exists after
// all, the server refuses the creation. An object that may have finished is fetched first.
func (w *work) applyNotFetched(u *unit) {
	if u.isPurgeRecorded() || u.hasExpired() || u.isAppliedOnce() {
		w.waitUnknown(u)
		return
	}
	w.applyAbsent(u)
}

func (w *work) waitNamespace(u *unit) {
	w.blockWrite(u)
	w.wait(u, report.WaitNamespaceGone, "namespace "+u.key.Namespace+" is being deleted")
}

func (w *work) applyPresent(u *unit) {
	switch {
	case u.isFinished():
		u.markFinished()
	case !u.live.DeletionTimestamp.IsZero():
		if !u.isPurgeRecorded() && !u.isAppliedOnce() {
			w.blockWrite(u) // it is created again
		}
		w.wait(u, report.WaitGone, terminating(u.live))
	case u.item.Phase == vocabulary.PhaseReleased && u.item.UID == u.live.UID && u.relation == ownedByOther:
		w.waitForNewOwner(u)
	case !u.isOurs():
		w.adopt(u)
	case u.isPurgeRecorded():
		// The purge was recorded, but not answered; or the object was put
		// back, with our label and annotation.
		w.deletePurged(u)
	case u.item.Phase == vocabulary.PhaseRecreating && u.item.UID == u.live.UID:
		w.recreate(u)
	default:
		reason, due := w.writeDue(u)
		if c, conflicting := w.conflict(u); conflicting && (!due || reason.correctsDrift()) {
			w.waitConflict(u, c)
			due = false
		}
		if due {
			if w.mustRecreate(u) || reason == ReasonManifestChanged && u.isRecreatePolicy() && !u.isSameManifest() {
				w.recreate(u)
				return
			}
			verb := u.updateVerb()
			if (reason == ReasonOwnershipLost || reason == ReasonOwnershipShared) && u.toleratesDrift() {
				verb = VerbMark // ownership is no drift
			}
			w.write(u, verb, reason)
			return
		}
		w.checkReadiness(u)
	}
}

// writeDue reports whether an object of ours has to be written, and why.
func (w *work) writeDue(u *unit) (Reason, bool) {
	switch {
	case u.isAppliedOnce():
		return "", false
	case u.item.Digest == "" || u.item.UID != u.live.UID || u.item.Phase == vocabulary.PhaseRecreating:
		// The object is there but its write was never recorded as accepted.
		return ReasonUnconfirmed, true
	case !u.isSame():
		return ReasonManifestChanged, true
	case u.isRekeyed():
		return ReasonDigestKeyChanged, true
	case u.relation == labelLost && u.live.ObservedHash != u.item.ObservedHash:
		// If it is as our last write was answered, the server itself removes
		// our label and annotation; another write would end the same way.
		return ReasonOwnershipLost, true
	case u.hasOtherOwners() && u.live.ObservedHash != u.item.ObservedHash:
		// Its former owner has put its label or annotation back, and would delete
		// the object by it. If our last write was answered so, another one ends the same way.
		return ReasonOwnershipShared, true
	case u.hasDrifted():
		return ReasonDrifted, !u.toleratesDrift()
	case w.reapplyDue(u):
		return ReasonReapply, true
	}
	return "", false
}

func (w *work) reapplyDue(u *unit) bool {
	interval := u.desired.Policies.Reapply
	return interval > 0 && (u.item.AppliedAt == nil || !w.in.Now.Before(u.item.AppliedAt.Add(interval)))
}

// adopt adopts an object that is not ours, if the policy allows it.
func (w *work) adopt(u *unit) {
	if u.item.UID != "" && u.item.UID == u.live.UID && u.relation == ownedByOther && u.live.Shared == "" {
		// It was ours, and another owner has put its label or annotation on it. Adopting it
		// again would start a conflict.
		w.note(u.key, report.NoteReleased, "released: %s adopted it", u.otherOwner)
		u.item.Phase = vocabulary.PhaseReleased
		w.waitForNewOwner(u)
		return
	}
	if !u.mayAdopt() {
		w.refuseAdoption(u)
		return
	}
	if u.isInherited() && w.mustRecreate(u) {
		w.recreate(u)
		return
	}
	if u.isInherited() && u.isAppliedOnce() {
		w.write(u, VerbMark, ReasonAdopted)
		return
	}
	if u.toleratesDrift() && u.item.UID == u.live.UID && u.wasApplied() {
		// It has neither our label nor our annotation any more, and its fields are not changed.
		w.write(u, VerbMark, ReasonOwnershipLost)
		return
	}
	w.write(u, u.updateVerb(), ReasonAdopted)
}

// waitForNewOwner waits until the owner that adopted the object drops it, even under the policy Always.
func (w *work) waitForNewOwner(u *unit) {
	w.blockWrite(u)
	w.wait(u, report.WaitOwner, "belongs to "+u.otherOwner+", which adopted it")
}

func (w *work) refuseAdoption(u *unit) {
	w.blockWrite(u)
	if u.live.Shared != "" {
		w.wait(u, report.WaitOwner, "belongs to all components of the operator, which share it, and the content that this component renders is another one: "+
			"remove what changes it for this component, such as a patch")
		return
	}
	owner, remedy := "belongs to "+u.otherOwner, "always"
	if u.otherOwner == "" {
		owner = "exists, has no owner,"
	}
	ownership := u.live.Ownership
	ofComponent := ownership.Ref != OwnerRef{} && !ownership.Ref.SameOwner(w.in.Owner.Ref)
	if len(ownership.OtherOwners) > 0 && (ofComponent || ownership.OwnerID != "" && ownership.mayAdoptFromAll(u.desired.Policies)) {
		owner += " and to " + ownerTitle(ownership)
	}
	if u.relation == unowned || u.relation == earlierIncarnation {
		remedy = "if-unowned"
	}
	message := fmt.Sprintf("%s and the adoption policy is %s; the annotation %s/%s: %s in its manifest adopts it",
		owner, policy.Kebab(string(u.desired.Policies.Adoption)), w.in.Name, v1alpha1.AnnotationAdoptionPolicy, remedy)
	if ofComponent {
		advice, me, of := "give the object a name that differs by component, or have one component only", w.in.Owner.Ref, ownership.Ref
		if of.Namespace = me.Namespace; of.SameOwner(me) && u.key.Namespace == me.Namespace {
			advice = fmt.Sprintf("if the object was restored with this component, \"corbel adopt restored %s.%s/%s -n %s\" makes it an object of this component",
				strings.ToLower(me.Kind), me.Group, me.Name, me.Namespace)
		} else if u.key.Kind == "CustomResourceDefinition" {
			advice = "components share a definition that is in the folder crds of a chart, or that the option SharedTypes names"
		}
		message = owner + ", which is another component of this operator: " + advice
	}
	w.wait(u, report.WaitOwner, message)
}

// ignoreUnowned does not change an object that is not ours and is not to be adopted: it is not on
// record, it is not counted, and no other object waits for it. An object that was ours before is released.
func (w *work) ignoreUnowned(u *unit) bool {
	if !u.desired.Policies.Adopts().IgnoresOthers || u.live.Existence != Present || !u.live.DeletionTimestamp.IsZero() || u.isOurs() || u.mayAdopt() || u.isFinished() {
		return false
	}
	w.ignored = append(w.ignored, u.key)
	if w.ownsBesidesOthers(u) {
		w.removeOwnership(u, ReasonOwnedByOthers)
		u.settled = true
		return true
	}
	w.dropUnowned(u)
	return true
}

func (u *unit) updateVerb() Verb {
	switch u.desired.Policies.Update {
	case v1alpha1.UpdatePolicySsaMerge:
		return VerbMerge
	case v1alpha1.UpdatePolicySsaOverride:
		return VerbOverride
	default:
		return VerbReplace
	}
}

func (w *work) write(u *unit, verb Verb, reason Reason) {
	w.notePending(u)
	if u.mergeDependsOn() {
		w.recordFirst = true
	}
	s := u.step(verb, applyStageOf(u), reason)
	s.Desired, s.Autoscaled = u.desired, w.isAutoscaled(u)
	switch reason {
	case ReasonAdopted:
		s.PreviousOwner = u.otherOwner
	case ReasonOwnershipShared:
		s.PreviousOwner = strings.Join(u.live.Ownership.OtherOwners, " and ")
	}
	if reason.correctsDrift() || reason == ReasonMissing && u.wasDeleted() {
		s.Drift = u.drift()
	}
	s.SkipIfUnchanged = reason == ReasonUnconfirmed && u.item.UID == "" && u.item.Intended == u.desired.Digest && len(s.Ownership.OtherOwners) == 0
	s.ItemAfter.Digest, s.ItemAfter.Intended = u.desired.Digest, ""
	s.ItemAfter.DependsOn = dependenciesOf(u.desired)
	s.ItemAfter.Phase, s.ItemAfter.Inherited = vocabulary.PhaseApplied, false
	if verb == VerbCreate {
		s.UID, s.ResourceVersion, s.Finalizers, s.HasOwnerReferences, s.Carried, s.Scaled = "", "", nil, false, "", false
		s.ItemAfter.UID, s.ItemAfter.Seal, s.ItemAfter.Keeps, s.ItemAfter.Kept, s.ItemAfter.Finished = "", "", false, nil, ""
	}
	w.step(s)
}

func (u *unit) isRecreatePolicy() bool {
	return u.desired.Policies.Update == v1alpha1.UpdatePolicyRecreate
}

// mustRecreate reports whether an object of ours has to be recreated, because the server has refused to
// change an immutable field of it. Under RecreateOnImmutable, a changed manifest is a reason. Under both policies, a write
// that was not confirmed is a reason, and so is a difference after the digest key was replaced: then
// it is unknown of which manifest the object was made. Changes of other clients are no reason.
func (w *work) mustRecreate(u *unit) bool {
	onImmutable := u.desired.Policies.Update == v1alpha1.UpdatePolicyRecreateOnImmutable
	if u.failure == nil || !u.failure.Immutable || !u.isRecreatePolicy() && !onImmutable || !u.isOurs() && !u.isInherited() {
		return false
	}
	switch reason, _ := w.writeDue(u); reason {
	case ReasonUnconfirmed:
		return true
	case ReasonDigestKeyChanged:
		return u.live.Differs
	default:
		return onImmutable && reason == ReasonManifestChanged && !u.isSameManifest()
	}
}

// recreate deletes the object once the server would accept its successor; it is
// created when its absence is proven.
func (w *work) recreate(u *unit) {
	if w.namespaceTerminating(u.key.Namespace) {
		w.waitNamespace(u)
		return
	}
	w.blockWrite(u)
	if w.in.Retain[u.key] {
		w.wait(u, report.WaitError, "is not deleted to be created again, because it is to be retained; the change that the server refuses has to be made by hand")
		return
	}
	if !w.in.DryRunAccepted[u.key] {
		s := u.step(VerbDryRun, applyStageOf(u), ReasonRecreate)
		s.Desired = u.desired
		w.step(s)
		return
	}
	if u.item.Phase != vocabulary.PhaseRecreating || u.item.UID != u.live.UID {
		// No manifest counts as applied until the new object is created.
		u.item.Phase, u.item.UID, u.item.Digest, u.item.Finished = vocabulary.PhaseRecreating, u.live.UID, "", ""
		w.recordFirst = true
	}
	s := u.step(VerbDelete, applyStageOf(u), ReasonRecreate)
	s.Desired = u.desired
	w.step(w.withGuard(s, u))
}

// checkReadiness marks an object of ours as settled, or reports why it is not ready.
func (w *work) checkReadiness(u *unit) {
	if (u.hasDrifted() || u.hadDrifted()) && u.toleratesDrift() && !u.isAppliedOnce() {
		w.reportDrift(u)
	}
	w.reportAltered(u)
	w.reportScaled(u)
	switch {
	case u.item.Digest == "" || u.item.UID != u.live.UID:
		// It is applied only once, and the answer to that was lost.
		u.item.Digest, u.item.UID = u.desired.Digest, u.live.UID
		u.item.ObservedHash, u.item.AppliedHash = u.live.ObservedHash, u.live.AppliedHash
	case !u.hasDrifted() && !u.isSameByRevision() && (u.live.AppliedHash != "" || u.item.AppliedHash == ""):
		// Without the values at the paths of the manifest, drift is not known. Drift that
		// is not repaired, because the object is applied only once, stays visible: the
		// policy may change.
		u.item.ObservedHash = u.live.ObservedHash
	}
	u.item.Phase, u.item.DependsOn = vocabulary.PhaseApplied, dependenciesOf(u.desired)
	u.item.Finished = recordedFinish[u.live.Finish]
	switch u.live.Status.Readiness {
	case Ready:
		w.settleReady(u)
	case Failed:
		w.wait(u, report.WaitFailed, u.live.Status.Message)
	case ReadinessUnknown:
		w.checkEmptyStatus(u)
	default:
		w.wait(u, report.WaitReady, u.live.Status.Message)
	}
}

// recordedFinish are the ends that are recorded of an object with a TTL: once the object is gone,
// the record proves that its work ended.
var recordedFinish = map[Finish]string{FinishComplete: vocabulary.FinishComplete, FinishFailed: vocabulary.FinishFailed}

// settleReady finds an object ready. A hook of a deletion has done its work then. That is durable
// before the hook, or anything that waits for it, is deleted: otherwise a crash would look as if
// the hook had never run.
func (w *work) settleReady(u *unit) {
	u.settled = true
	if u.runsOnDelete() {
		u.item.Phase = vocabulary.PhaseCompleted
		w.recordFirst = true
	}
}

// checkEmptyStatus gives the controller of a custom resource a moment to write its
// first status; a resource without a controller counts as ready then.
func (w *work) checkEmptyStatus(u *unit) {
	since := u.live.CreationTimestamp
	if u.item.AppliedAt != nil {
		since = u.item.AppliedAt.Time
	}
	until := since.Add(EmptyStatusGracePeriod)
	if !w.in.Now.Before(until) {
		w.settleReady(u)
		return
	}
	w.waiting = append(w.waiting, Wait{Key: u.key, Reason: report.WaitReady, Message: "no status yet", Until: until})
}

// terminating describes why a deletion is not complete.
func terminating(o Observation) string {
	message := "is being deleted since " + o.DeletionTimestamp.UTC().Format(time.RFC3339)
	if len(o.Finalizers) > 0 {
		message += ", held by finalizers " + strings.Join(o.Finalizers, ", ")
	}
	return message
}
