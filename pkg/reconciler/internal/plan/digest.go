// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// These separators divide, in a digest, the manifest from the component and from the
// revision, which are there only if they count.
const (
	componentSeparator = "+"
	revisionSeparator  = "@"
)

// isSame reports whether the manifest that was last accepted is the desired one, or counts as the
// same because its revision is, or because it is not known. The manifest of an object that failed
// is compared itself, so that a mistake can be corrected without a new revision.
func (u *unit) isSame() bool {
	if u.item.Digest == u.desired.Digest {
		return true
	}
	_, recorded, _ := strings.Cut(u.item.Digest, revisionSeparator)
	_, desired, tied := strings.Cut(u.desired.Digest, revisionSeparator)
	if u.isRekeyed() {
		return recorded == desired
	}
	return tied && recorded == desired && u.live.Status.Readiness != Failed
}

// isSameManifest is isSame for the manifest and the revision alone: the digest of the component
// does not count. In another revision the same manifest runs again: two rollbacks have the same
// hooks if both go back to the same revision.
func (u *unit) isSameManifest() bool {
	_, recorded, _ := strings.Cut(u.item.Digest, revisionSeparator)
	_, desired, _ := strings.Cut(u.desired.Digest, revisionSeparator)
	return manifestOf(u.item.Digest) == manifestOf(u.desired.Digest) && recorded == desired
}

func manifestOf(digest string) string {
	manifest, _, _ := strings.Cut(digest, revisionSeparator)
	manifest, _, _ = strings.Cut(manifest, componentSeparator)
	return manifest
}

// WithComponent returns the digest of an object that is written also when the
// component changes, or the options that concern it. That its manifest is the same is
// still to be seen: it is not recreated then.
func WithComponent(manifest, component string) string {
	return manifest + componentSeparator + component
}

// WithRevision returns the digest of an object that counts as changed only when the
// revision does.
func WithRevision(manifest, revision string) string { return manifest + revisionSeparator + revision }

// carryRevision returns the recorded digest in the form of the desired one, if the two differ
// only in that one of them has a revision: a manifest that has no revision yet, or none any
// more, is no change of the object.
func carryRevision(recorded, desired string) string {
	was, _, hadRevision := strings.Cut(recorded, revisionSeparator)
	is, _, hasRevision := strings.Cut(desired, revisionSeparator)
	switch {
	case hadRevision == hasRevision:
		return recorded
	case was == is:
		return desired
	case was == rekeyed:
		return rekeyed + strings.TrimPrefix(desired, is)
	}
	return recorded
}

// isSameByRevision reports whether the object counts as unchanged only because its revision is: it
// was made of another manifest than the desired one.
func (u *unit) isSameByRevision() bool { return u.item.Digest != u.desired.Digest && u.isSame() }

// hasDrifted reports whether the live values differ from the values that the server accepted, at
// the paths that the manifest sets. If the object was made of another manifest, drift is not known,
// because that manifest may set other paths.
func (u *unit) hasDrifted() bool {
	if u.item.AppliedHash == "" || u.live.AppliedHash == "" || u.isSameByRevision() {
		return false
	}
	return u.live.ObservedHash != u.item.ObservedHash && u.live.AppliedHash != u.item.AppliedHash
}

// hadDrifted reports whether an object that was not fetched now had drifted when it
// was fetched last.
func (u *unit) hadDrifted() bool { return u.live.Deferred && u.live.Drift != nil }

// A digest that was made with another key than ours cannot be compared: it is not known of
// which manifest an object was made. Another key alone is no reason to delete anything, or to
// run anything again. So the manifest counts as the same, and an object that is to
// follow its manifest is written in place once: the manifest may have changed as well.

// rekeyed stands in a digest for a manifest that is not known any more.
const rekeyed = v1alpha1.UnknownManifest

// Rekeyed returns the record for another digest key than the one it was made with. Values that are
// not hashed with the key stay, such as the revisions of the objects. The hashes of the live
// objects are left out: otherwise each object would look as if it had drifted.
func Rekeyed(items []v1alpha1.InventoryItem) []v1alpha1.InventoryItem {
	items = slices.Clone(items)
	for i := range items {
		item := &items[i]
		item.ObservedHash, item.AppliedHash = "", ""
		if item.Digest == "" {
			continue // no manifest was accepted yet
		}
		_, revision, tied := strings.Cut(item.Digest, revisionSeparator)
		if item.Digest = rekeyed; tied {
			item.Digest = WithRevision(rekeyed, revision)
		}
	}
	return items
}

// IsRekeyed reports whether it is not known of which manifest the object was made, because
// the digest key is another one.
func IsRekeyed(item v1alpha1.InventoryItem) bool { return manifestOf(item.Digest) == rekeyed }

func (u *unit) isRekeyed() bool { return IsRekeyed(u.item) }

// assumeDesiredManifest assumes that the object was made of the desired manifest, if its manifest
// is not known and no write is needed to find out. Later changes of the manifest are noticed then.
func (u *unit) assumeDesiredManifest() {
	refused := u.refusedAsDesired()
	if !refused && !u.needsNoWriteIfUnknown() {
		return
	}
	if u.live.Existence == Present && u.item.UID == u.live.UID {
		if u.live.AppliedHash == "" {
			return // it was not looked at
		}
		u.item.ObservedHash, u.item.AppliedHash = u.live.ObservedHash, u.live.AppliedHash
	}
	if refused {
		u.failure = nil
	}
	u.item.Digest = u.desired.Digest
}

// needsNoWriteIfUnknown reports whether the object is not to be written only because its
// manifest is not known: it follows only another manifest, or another revision, or it did
// its work.
func (u *unit) needsNoWriteIfUnknown() bool {
	if u.desired == nil || u.becameHook || !u.isRekeyed() || !u.live.known() || !u.isSame() {
		return false
	}
	ended, _ := u.isComplete()
	tied := strings.Contains(u.desired.Digest, revisionSeparator)
	return tied || ended || u.hasExpired() || u.isPurgeRecorded() || u.runsOnDelete() || u.isAppliedOnce() || u.toleratesDeletion()
}

// refusedAsDesired reports whether the server refuses to change the object in place, and
// it has all values of the manifest, as far as can be seen.
func (u *unit) refusedAsDesired() bool {
	refused := u.failure != nil && u.failure.Immutable && u.desired != nil && u.isRekeyed() && u.isSame()
	return refused && u.isOurs() && u.item.UID == u.live.UID && !u.live.Differs
}
