// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// namespaceDigest is the digest of every namespace that is created because
// objects live in it: its manifest never changes.
const namespaceDigest = "namespace"

// Namespaces returns the keys of the namespaces that objects to be created
// live in. The observations of a plan must include them: missing ones are
// created, and in terminating ones nothing is.
func Namespaces(desired []Desired, live map[Key]Observation) []Key {
	var keys []Key
	seen := map[Key]bool{}
	for _, d := range desired {
		if d.Key.Namespace == "" || live[d.Key].Existence == Present {
			continue
		}
		key := namespaceKey(d.Key.Namespace)
		if _, observed := live[key]; !observed && !seen[key] {
			keys, seen[key] = append(keys, key), true
		}
	}
	return keys
}

type neededNamespace struct {
	first     int16 // the first wave that needs it
	mayCreate bool  // an object may have to be created in it
}

// addNamespaces makes desired units of the namespaces that the desired units lack, and returns
// them. When applying, it keeps the recorded namespaces that are still needed, even if the
// manifests no longer contain them.
func (w *work) addNamespaces(units []*unit) (added []*unit) {
	needed := map[string]neededNamespace{}
	for _, u := range units {
		d := u.desired
		if d == nil || d.Key.Namespace == "" {
			continue
		}
		h, known := needed[d.Key.Namespace]
		if !known || d.Policies.Order.Apply < h.first {
			h.first = d.Policies.Order.Apply
		}
		h.mayCreate = h.mayCreate || !u.isFinished() && !u.hookCompleted() && !u.toleratesDeletion()
		needed[d.Key.Namespace] = h
	}
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		if u := w.addNamespace(namespaceKey(name), needed[name]); u != nil {
			added = append(added, u)
		}
	}
	slices.SortFunc(w.units, func(a, b *unit) int { return a.key.Compare(b.key) })
	return added
}

func (w *work) addNamespace(key Key, h neededNamespace) *unit {
	u := w.byKey[key]
	missing := w.in.Live[key].Existence == Absent
	switch {
	case u != nil && u.desired != nil:
		return nil // the manifests bring it
	case missing && !(h.mayCreate && w.in.MissingNamespaces == v1alpha1.MissingNamespacesPolicyCreate):
		return nil
	case missing && u == nil:
		u = &unit{key: key}
		w.add(u)
	case u == nil && w.in.Live[key].Automatic != "" && w.in.Cause == Applying:
		u = &unit{key: key, live: w.in.Live[key], item: v1alpha1.InventoryItem{Version: "v1", Kind: key.Kind, Name: key.Name, Origin: vocabulary.OriginNamespace}, shared: true}
		w.add(u)
		return nil
	case u == nil:
		return nil // it exists, or was not read; it is not ours
	case w.in.Cause == Applying && !missing && !u.isOurs() && MayBeShared(u.item) && (!u.live.known() || u.live.Automatic != ""):
		u.shared = true
		return nil
	case !missing && w.in.Cause == Deleting:
		return nil // it goes like everything else
	case !missing && u.item.Origin == vocabulary.OriginManifest && orphans(u.item.DeletePolicy, ReasonRedundant):
		return nil // it is orphaned, so it stays
	}
	u.setDesired(w.namespace(key, h.first))
	u.item.Origin = vocabulary.OriginNamespace
	u.setLive(w.in)
	if u.live.Existence == Present && !u.isOurs() {
		// Another owner has it now. It only has to exist.
		u.desired = nil
		if !w.ownsBesidesOthers(u) { // otherwise it is orphaned when its wave is removed
			w.dropUnowned(u)
		}
		return nil
	}
	return u
}

// Several components may use a namespace that was created for the first of them. It belongs to the
// first until that one no longer needs the namespace; then it is in use, so it is orphaned, with
// the annotation that proves its origin. The other components record it without a uid, and the last
// of them deletes it.

// MayBeShared reports whether the item may record a namespace that was created for another
// component.
func MayBeShared(item v1alpha1.InventoryItem) bool {
	return item.Origin == vocabulary.OriginNamespace && item.UID == "" && item.Digest == ""
}

// IsSharedNamespace reports whether a recorded object is such a namespace, and still used: it is not read then.
func IsSharedNamespace(in Input, item v1alpha1.InventoryItem) bool {
	return in.Cause == Applying && MayBeShared(item) && slices.ContainsFunc(in.Desired, func(d Desired) bool { return d.Key.Namespace == item.Name })
}

// isLeftOver reports whether the object is a namespace that a component of ours has created for its content, and
// that has no owner any more.
func (u *unit) isLeftOver() bool {
	return MayBeShared(u.item) && u.relation == unowned && u.live.Automatic != ""
}

// namespace returns the desired form of a namespace that no manifest brings.
// Nothing of it is ever compared or written again, except our label and annotation.
func (w *work) namespace(key Key, order int16) *Desired {
	manifest := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Namespace",
		"metadata": map[string]any{
			"name":        key.Name,
			"labels":      map[string]any{w.in.Name + "/" + vocabulary.LabelOwnerID: w.in.Owner.ID},
			"annotations": map[string]any{w.in.Name + "/" + vocabulary.AnnotationOwner: w.in.Owner.Ref.String()},
		},
	}}
	if automatic := w.in.Live[key].Automatic; automatic != "" {
		_ = unstructured.SetNestedField(manifest.Object, automatic, "metadata", "annotations", w.in.Name+"/"+vocabulary.AnnotationAutomatic)
	}
	return &Desired{
		Key:     key,
		Version: "v1",
		Digest:  namespaceDigest,
		Policies: policy.Set{
			Adoption:  v1alpha1.AdoptionPolicyNever,
			Reconcile: v1alpha1.ReconcilePolicyOnObjectChange,
			Update:    v1alpha1.UpdatePolicySsaMerge,
			Delete:    v1alpha1.DeletePolicyDelete,
			Order:     policy.Order{Apply: order},
		},
		Manifest: manifest,
	}
}

// namespaceTerminating reports whether objects cannot be created in a namespace
// because it is being deleted.
func (w *work) namespaceTerminating(name string) bool {
	if name == "" {
		return false
	}
	live := w.in.Live[namespaceKey(name)]
	return live.Existence == Present && !live.DeletionTimestamp.IsZero()
}

// minContentUnknownGap is the shortest time without a try after which the measure starts
// again: retries must come sooner.
const minContentUnknownGap = time.Minute

// contentUnknownSince returns since when the content of a namespace cannot be read, and
// when that was last tried; both are nil if it was not tried for long, because then it is not known
// whether it lasted. A last try that is to be recorded again is nil, too: not each
// try is worth a write.
func (w *work) contentUnknownSince(u *unit) (since, last *metav1.Time) {
	since, last = u.item.UnreadSince, u.item.UnreadLast
	gap := w.contentUnknownGap()
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

func (w *work) contentUnknownGap() time.Duration { return max(w.in.Timeout/2, minContentUnknownGap) }

// contentUnknownUntil returns when a namespace with unreadable content is orphaned; zero
// if its content was not tried to be read, or never.
func (w *work) contentUnknownUntil(u *unit) time.Time {
	since, _ := w.contentUnknownSince(u)
	if since == nil || w.in.Timeout <= 0 {
		return time.Time{}
	}
	return since.Add(w.in.Timeout)
}

// resetContentUnknown ends the measure of how long the content of a namespace cannot be read.
func resetContentUnknown(item *v1alpha1.InventoryItem) { item.UnreadSince, item.UnreadLast = nil, nil }
