// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
)

// prune removes recorded objects that are no longer desired. An object waits until the writes of
// its own and the earlier apply waves went through, so that its replacement exists; only an object
// with a generated name waits for readiness. It goes first if it holds a value that a failed
// creation asks for.
func (w *work) prune() {
	var redundant []*unit
	var desired map[Key][]*unit // made only if something is redundant
	for _, u := range w.units {
		if u.desired == nil && !u.dropped && !u.shared {
			if desired == nil {
				desired = w.equivalents()
			}
			if u.equivalents = desired[withoutGroup(u.key)]; u.isDesiredInOtherGroup() {
				u.drop()
				continue
			}
			if w.in.Retain[u.key] && (w.in.RepairOnly || u.live.Existence != Absent) {
				w.retain(u)
				continue
			}
			if u.item.DeletePolicy == v1alpha1.DeletePolicyOrphanOnApply && u.live.Existence != Absent {
				// It is recorded that the object is orphaned whatever comes: the component may be
				// deleted before that is done. Once our label and annotation are gone, nothing else
				// distinguishes the object from an object that lost them.
				u.item.DeletePolicy = v1alpha1.DeletePolicyOrphan
				w.recordFirst = true
			}
			redundant = append(redundant, u)
		}
	}
	w.findFormerNeeds()
	w.remove(redundant, ReasonRedundant)
}

// retain leaves an object as it is. If the answer to its creation was lost, it is recorded as it was
// found.
func (w *work) retain(u *unit) {
	if u.live.Existence != Absent {
		w.retained = append(w.retained, u.key)
	}
	if u.item.UID == "" && u.live.Existence == Present && u.isOurs() {
		u.item.UID, u.item.ObservedHash, u.item.AppliedHash = u.live.UID, u.live.ObservedHash, u.live.AppliedHash
	}
}

// awaitsWrites reports whether the writes that come before the removal are outstanding.
func (w *work) awaitsWrites(u *unit, reason Reason) bool {
	return reason == ReasonRedundant && w.firstUnwritten <= int(u.item.ApplyOrder) && !w.mayGoFirst(u)
}

// generatedName is the end of a name that kustomize has generated: a hash of the content, in its alphabet.
var generatedName = regexp.MustCompile(`-[2456789bcdfghkmt]{10}$`)

// awaitsRollout reports whether pods of the former version may use the object: its name is
// generated, so the pods of the new version use another one, and not every desired object in its
// namespace is ready. After the timeout it does not wait.
func (w *work) awaitsRollout(u *unit, reason Reason) bool {
	generated := (u.key.Kind == "ConfigMap" || u.key.Kind == "Secret") && u.key.Group == "" && generatedName.MatchString(u.key.Name)
	return reason == ReasonRedundant && generated && !w.in.TimedOut && slices.ContainsFunc(w.units, func(other *unit) bool {
		return other.desired != nil && !other.runsOnDelete() && other.key.Namespace == u.key.Namespace && !other.settled
	})
}

// remove deletes objects, wave by wave and stage by stage; a stage starts when
// everything before it is gone.
func (w *work) remove(units []*unit, reason Reason) {
	units = slices.DeleteFunc(slices.Clone(units), func(u *unit) bool { return u.mendsWebhook }) // it goes first
	w.keepContainers(units, reason)
	ordered := w.removalOrder(units, reason)
	blocked := false
	for len(ordered) > 0 {
		end := slices.IndexFunc(ordered, func(u *unit) bool {
			return u.removalWave != ordered[0].removalWave || u.removalStage != ordered[0].removalStage
		})
		if end < 0 {
			end = len(ordered)
		}
		stage := ordered[:end]
		ordered = ordered[end:]
		for _, u := range stage {
			if blocked {
				w.holdRemoval(u, "is removed after others are gone")
			} else {
				w.removeInOrder(u, reason)
			}
		}
		blocked = blocked || slices.ContainsFunc(stage, func(u *unit) bool { return !u.dropped })
	}
	w.resetVisits()
}

// removeInOrder removes the object after its dependents in the same stage.
func (w *work) removeInOrder(u *unit, reason Reason) {
	if u.visited {
		return
	}
	u.visited = true
	for _, other := range u.neededBy {
		if other.removing && other.removalWave == u.removalWave && other.removalStage == u.removalStage {
			w.removeInOrder(other, reason)
		}
	}
	dependent := u.remainingDependent()
	switch {
	case dependent != nil:
		w.holdRemoval(u, "is removed after "+dependent.key.String()+", which needs it")
	case w.awaitsWrites(u, reason):
		w.holdRemoval(u, "is removed after the others are written")
	case w.awaitsRollout(u, reason):
		w.holdRemoval(u, "is removed after the other objects are ready, because pods of before may use it")
	default:
		w.removeOne(u, reason)
	}
}

func (w *work) holdRemoval(u *unit, message string) {
	if u.live.Existence == Absent {
		u.drop()
		return
	}
	if u.failure == nil {
		resetContentUnknown(&u.item) // its content is not read meanwhile, so nothing lasts
	}
	w.wait(u, report.WaitOrder, message)
}

func (w *work) removeOne(u *unit, reason Reason) {
	switch {
	case u.live.Existence == Absent || u.isNotStored() && !u.live.known():
		u.drop()
	case !u.live.known():
		w.waitNotRead(u)
	case u.unknownEquivalent() != nil:
		other := u.unknownEquivalent().key
		w.wait(u, report.WaitOrder, fmt.Sprintf("is removed when it is known that %s in the group %q is another object", other, other.Group))
	case w.ownsBesidesOthers(u):
		w.removeOwnership(u, reason)
	case !u.mayRemove():
		w.dropUnowned(u)
	case u.failure != nil:
		w.waitRemoval(u)
	case w.willOrphan(u, reason):
		w.orphan(u, reason)
	case !u.live.DeletionTimestamp.IsZero() && !HasForeignFinalizer(u.key, w.in.Name, u.live.Finalizers):
		w.wait(u, report.WaitGone, terminating(u.live))
	default:
		if reason == ReasonRedundant && w.firstUnwritten <= int(u.item.ApplyOrder) {
			w.note(u.key, "", "is removed before the others are written: one of its kind cannot be created, because a value is already allocated")
		}
		s := w.withGuard(u.step(VerbDelete, stageRemoval, reason), u)
		s.Shared = u.isLeftOver()
		if u.item.Keeps {
			s.Guard = s.Guard.orOrphan()
		}
		s.ItemAfter.UnreadSince, s.ItemAfter.UnreadLast = w.contentUnknownSince(u)
		if until := w.contentUnknownUntil(u); s.Guard == GuardEmptyElseOrphan && !until.IsZero() && !w.in.Now.Before(until) {
			s.Guard = GuardKnownEmptyElseOrphan
		}
		w.step(s)
	}
}

// waitRemoval waits because the removal failed or was blocked in this reconcile.
func (w *work) waitRemoval(u *unit) {
	wait := Wait{Key: u.key, Reason: failureReason(*u.failure), Message: u.failure.Message, Until: w.contentUnknownUntil(u)}
	if !wait.Until.IsZero() {
		wait.Message += "; if that lasts, it is orphaned at " + wait.Until.UTC().Format(time.RFC3339)
		if again := w.in.Now.Add(w.contentUnknownGap() / 2); again.Before(wait.Until) {
			wait.Until = again // a try must come before the measure starts again
		}
	}
	w.waiting = append(w.waiting, wait)
}

func (u *unit) drop() {
	u.dropped, u.settled = true, true
}

// A server may serve one object in several groups, such as Event in the core group and
// in events.k8s.io. When the manifests name another group, the recorded object and the
// desired one have different keys and one uid.

// equivalents returns the desired objects by their keys without the group.
func (w *work) equivalents() map[Key][]*unit {
	desired := map[Key][]*unit{}
	for _, u := range w.units {
		if u.desired != nil {
			desired[withoutGroup(u.key)] = append(desired[withoutGroup(u.key)], u)
		}
	}
	return desired
}

// isDesiredInOtherGroup reports whether the very object is desired in another group.
func (u *unit) isDesiredInOtherGroup() bool {
	return slices.ContainsFunc(u.equivalents, func(other *unit) bool {
		uid := other.live.UID
		return other.live.Existence == Present && uid != "" && (uid == u.item.UID || uid == u.live.UID)
	})
}

// unknownEquivalent returns a desired object that may be the very object, in another group.
func (u *unit) unknownEquivalent() *unit {
	if i := slices.IndexFunc(u.equivalents, func(other *unit) bool { return !other.live.known() }); i >= 0 {
		return u.equivalents[i]
	}
	return nil
}
