// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// runsOnDelete reports whether the object is desired only before or after a deletion.
func (u *unit) runsOnDelete() bool {
	return u.desired != nil && u.desired.Policies.RunOn != policy.RunOnApply
}

// hookCompleted reports whether a hook has done its work. It does not run again,
// even if its manifest has changed.
func (u *unit) hookCompleted() bool {
	return u.runsOnDelete() && u.item.RunOn != "" && u.item.Phase == vocabulary.PhaseCompleted
}

// convertToHook converts an ordinary object to a hook, which runs when the component is deleted:
// its work at the installation does not count.
func (w *work) convertToHook(u *unit) {
	stays := u.live.Existence == Present && u.live.DeletionTimestamp.IsZero()
	recreated := stays && u.isOurs()
	if recreated && !w.in.DryRunAccepted[u.key] {
		w.recreate(u) // it is an ordinary object until the server accepts the other one
		return
	}
	if !stays {
		u.item.UID = "" // otherwise it would look as if the new one had completed and gone
	}
	u.item.RunOn, u.item.Phase, u.item.Digest, u.item.Finished = string(u.desired.Policies.RunOn), vocabulary.PhaseApplied, "", ""
	u.setDesired(u.desired)
	// Otherwise, after a crash, it would look like the ordinary object again.
	w.recordFirst = true
	if recreated {
		w.recreate(u)
	}
}

// desiredFor returns the desired objects that run on an apply, or before or after a deletion.
func (w *work) desiredFor(on policy.RunOn) []*unit {
	return slices.DeleteFunc(slices.Clone(w.units), func(u *unit) bool {
		return u.desired == nil || u.desired.Policies.RunOn != on
	})
}

// delete removes everything that is recorded. It applies and awaits the pre-delete hooks before the
// first deletion, and the post-delete hooks after the last one. The namespaces and types of
// post-delete hooks stay until these hooks are removed, too.
func (w *work) delete() {
	first := w.desiredFor(policy.RunOnPreDelete)
	if !w.applyWaves(slices.Concat(first, w.addNamespaces(first))) {
		for _, u := range w.units {
			if u.desired == nil && u.live.Existence != Absent && !u.mendsWebhook {
				w.holdRemoval(u, "is removed after what runs before the deletion")
			}
		}
		return
	}
	// A hook that is still there as an ordinary object is deleted first, with the other objects.
	last := slices.DeleteFunc(w.desiredFor(policy.RunOnPostDelete), func(u *unit) bool {
		return u.becameHook && u.live.Existence != Absent
	})
	others, holders := w.splitForHooks(last)
	w.remove(others, ReasonDeleting)
	if !allDropped(others) {
		w.holdAll(last, "runs after everything else is removed", false)
		return
	}
	if !w.applyWaves(slices.Concat(last, w.addNamespaces(last))) {
		return
	}
	w.remove(slices.Concat(last, holders), ReasonDeleting)
	w.deletionDone = allDropped(w.units)
}

// splitForHooks returns the recorded objects without the post-delete hooks, and, separately, the
// objects that these hooks cannot exist without.
func (w *work) splitForHooks(last []*unit) (others, holders []*unit) {
	held := map[*unit]bool{}
	for _, u := range last {
		if u.key.Namespace != "" {
			held[w.byKey[namespaceKey(u.key.Namespace)]] = true
		}
	}
	for _, u := range w.units {
		switch {
		case slices.Contains(last, u):
		case held[u] || slices.ContainsFunc(last, u.definesTypeOf):
			holders = append(holders, u)
		default:
			others = append(others, u)
		}
	}
	return others, holders
}

func (u *unit) definesTypeOf(other *unit) bool {
	return Covers(u.item.Defines, other.key.GroupKind())
}

func allDropped(units []*unit) bool {
	return !slices.ContainsFunc(units, func(u *unit) bool { return !u.dropped })
}
