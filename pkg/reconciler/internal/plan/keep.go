// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// maxKept is of how many instances a type's record says that they were left behind.
// Each takes less room than its own record did.
const maxKept = 1000

// What is left behind would go with its namespace, and with its type. So these
// are left behind, too, as long as it is there: otherwise nobody could ever delete
// them, because what was left behind counts as foreign from then on.

// keepHolders notes on the namespaces and types of the objects which are left
// behind that they are not to be deleted with them. That is durable before the
// marks of the first of them are taken off: afterwards nothing tells any more that
// it has been ours.
func (w *work) keepHolders(units []*unit, because Reason) {
	for _, holder := range w.units {
		mayHold := holder.key.isNamespace() || len(holder.item.Defines) > 0
		stays := holder.desired == nil && w.leftBehind(holder, because)
		if !mayHold || stays || holder.live.Existence == Absent {
			continue
		}
		for _, u := range units {
			if holder.holds(u) && w.staysBehind(u, because) && holder.keep(u, w.handsOver(u, because)) {
				w.ahead = true
			}
		}
	}
}

// keep notes that something stays behind in the namespace or the type, and tells
// whether that is news. An instance that goes to somebody else is one of theirs: it
// blocks the deletion of its type as any other does.
func (u *unit) keep(left *unit, handedOver bool) (news bool) {
	news, u.item.Keeps = !u.item.Keeps, true
	if len(u.item.Defines) == 0 || handedOver || left.letGo() || slices.Contains(u.item.Kept, left.live.UID) {
		return news
	}
	// A copy: the input must not change.
	kept := append(slices.Clone(u.item.Kept), left.live.UID)
	u.item.Kept = kept[max(len(kept)-maxKept, 0):]
	return true
}

// staysBehind tells whether an object that is there leaves the record and not the cluster.
func (w *work) staysBehind(u *unit, because Reason) bool {
	return u.live.Existence == Present && u.live.Deleting.IsZero() && u.mayRemove() && w.leftBehind(u, because)
}

// leftBehind tells whether an object that is ours is left behind when it is removed.
func (w *work) leftBehind(u *unit, because Reason) bool {
	return orphaned(u.item.DeletePolicy, because) || u.letGo() || w.protects(u.key) || w.handsOver(u, because)
}

// holds tells whether the object is the namespace of the other, or defines its type.
func (u *unit) holds(other *unit) bool {
	return other.key.Namespace != "" && u.key == namespaceKey(other.key.Namespace) || u.brings(other)
}

// orRelease is the guard that leaves behind what it must not delete.
func (g Guard) orRelease() Guard {
	switch g {
	case GuardNoInstances:
		return GuardNoInstancesOrRelease
	case GuardEmpty:
		return GuardEmptyOrRelease
	default:
		return g
	}
}

// Releases tells whether what must not be deleted is left behind, without our marks.
func (g Guard) Releases() bool {
	return g == GuardEmptyOrRelease || g == GuardKnownEmptyOrRelease || g == GuardNoInstancesOrRelease
}

// minGap is the shortest time without a try after which a measure begins anew: retries
// must come sooner.
const minGap = time.Minute

// unread returns since when the content of a namespace cannot be read, and when that was
// last tried; both are nil if nobody tried for long, because then it is not known
// whether it lasted. A last try that is to be recorded anew is nil, too: not each of
// them is worth a write.
func (w *work) unread(u *unit) (since, last *metav1.Time) {
	since, last = u.item.UnreadSince, u.item.UnreadLast
	gap := w.unreadGap()
	switch {
	case since == nil || w.in.Timeout <= 0:
		return since, last
	case last == nil || w.in.Now.Sub(last.Time) > gap:
		return nil, nil
	case w.in.Now.Sub(last.Time) > gap/2:
		return since, nil
	default:
		return since, last
	}
}

func (w *work) unreadGap() time.Duration { return max(w.in.Timeout/2, minGap) }

// unreadUntil returns when a namespace whose content cannot be read is released; zero
// if its content was not tried to be read, or never.
func (w *work) unreadUntil(u *unit) time.Time {
	since, _ := w.unread(u)
	if since == nil || w.in.Timeout <= 0 {
		return time.Time{}
	}
	return since.Add(w.in.Timeout)
}

// beRead ends the measure of how long the content of a namespace cannot be read.
func beRead(item *v1alpha1.InventoryItem) { item.UnreadSince, item.UnreadLast = nil, nil }
