// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// unit is everything known about one object.
type unit struct {
	key     Key
	desired *Desired // nil if the object is not wanted
	// item is the record to keep; it starts as what is recorded.
	item     v1alpha1.InventoryItem
	recorded bool
	live     Observation
	relation relation
	// owner names whose the object is, if it is not ours.
	owner   string
	failure *Failure
	// instance tells that the object is an instance of a managed type.
	instance bool
	// settled: nothing is to be done and nothing is waited for.
	settled bool
	// fought: somebody changes the object again and again.
	fought bool
	// stuck: the object is to be written, but cannot be now.
	stuck bool
	// held: the object waits for others.
	held bool
	// jammed: it cannot be, because its own last write failed or that of one
	// that comes before it.
	jammed bool
	// misplaced: the object runs before or after a deletion, but is on record
	// as an ordinary one.
	misplaced bool
	// dropped: the object leaves the record.
	dropped bool
	// needs are other objects that must be there as long as this one: when
	// applying, those that must be settled before; when removing, those that
	// must not go before.
	needs []*unit
	// leaves: the object is to be removed, in the delete wave leaving and in
	// its stage departure.
	leaves    bool
	leaving   int16
	departure int
	// neededBy are those that need this one and must not be left without it.
	neededBy []*unit
	// twins are the wanted objects of the same kind and name in other groups.
	twins []*unit
	// visited marks units that the walk under way has met, visiting those that
	// it came through.
	visited, visiting bool
}

// want makes the unit a wanted one and brings the descriptive part of its
// record up to date.
func (u *unit) want(d *Desired) {
	u.desired = d
	if u.misplaced = u.recorded && u.isHook() && u.item.RunOn == ""; u.misplaced {
		return // it is an ordinary object until it is gone
	}
	u.item.Digest = carried(u.item.Digest, d.Digest)
	u.item.RunOn = string(d.Policies.RunOn)
	u.item.Group, u.item.Version, u.item.Kind = d.Key.Group, d.Version, d.Key.Kind
	u.item.Namespace, u.item.Name = d.Key.Namespace, d.Key.Name
	u.item.Origin = v1alpha1.OriginManifest
	u.item.ApplyOrder, u.item.DeleteOrder = d.Policies.Order.Apply, d.Policies.Order.Delete
	u.item.Defines = d.Defines
	beRead(&u.item)
	u.item.DeletePolicy = d.Policies.Delete
	if u.item.DeletePolicy == v1alpha1.DeletePolicyDelete {
		u.item.DeletePolicy = ""
	}
	if !u.recorded || u.same() && !u.isRekeyed() {
		u.item.DependsOn = dependenciesOf(d)
	}
}

// observe takes over what is known about the live object.
func (u *unit) observe(in Input) {
	u.live = in.Live[u.key]
	if failure, failed := in.Failed[u.key]; failed {
		u.failure = &failure
	}
	if u.live.Existence == Present {
		adoption := v1alpha1.AdoptionPolicyIfUnowned
		if u.desired != nil {
			adoption = u.desired.Policies.Adoption
		}
		u.relation, u.owner = relate(in.Owner, u.item, adoption, u.live)
	}
	u.inherit()
}

// same reports whether the manifest that was last accepted is the desired one, or
// counts as the same because its revision is, or because it is not known. What has failed
// in a revision follows its manifest, so that a mistake can be corrected without a new revision.
func (u *unit) same() bool {
	if u.item.Digest == u.desired.Digest {
		return true
	}
	_, recorded, _ := strings.Cut(u.item.Digest, revisionMark)
	_, desired, tied := strings.Cut(u.desired.Digest, revisionMark)
	if u.isRekeyed() {
		return recorded == desired
	}
	return tied && recorded == desired && u.live.Status.Readiness != Failed
}

// sameManifest is same, whatever became of the component and of the revision.
func (u *unit) sameManifest() bool {
	return manifestOf(u.item.Digest) == manifestOf(u.desired.Digest)
}

func manifestOf(digest string) string {
	manifest, _, _ := strings.Cut(digest, revisionMark)
	manifest, _, _ = strings.Cut(manifest, componentMark)
	return manifest
}

// These marks separate, in a digest, the manifest from the component and from the
// revision, which are there only if they count.
const (
	componentMark = "+"
	revisionMark  = "@"
)

// WithComponent returns the digest of an object that is written also when the
// component changes, or the options that concern it. That its manifest is the same is
// still to be seen: it is not recreated then.
func WithComponent(manifest, component string) string { return manifest + componentMark + component }

// unkept reports whether the server has answered the creation of the object without
// a uid: it keeps no such object, so that none can be read or deleted.
func (u *unit) unkept() bool {
	return u.item.UID == "" && u.item.Digest != "" && u.item.Phase == v1alpha1.PhaseApplied && u.item.RunOn == ""
}

// WithRevision returns the digest of an object that counts as changed only when the
// revision does.
func WithRevision(manifest, revision string) string { return manifest + revisionMark + revision }

// carried returns the recorded digest in the form of the desired one, if the two differ
// only in that one of them has a revision: an object whose manifest says no revision yet,
// or none any more, is no changed object.
func carried(recorded, desired string) string {
	was, _, hadRevision := strings.Cut(recorded, revisionMark)
	is, _, hasRevision := strings.Cut(desired, revisionMark)
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

// tied reports whether the object counts as unchanged only because its revision is: it
// was made of another manifest than the wanted one.
func (u *unit) tied() bool { return u.item.Digest != u.desired.Digest && u.same() }

// drifted tells whether the live values differ from those that the server
// accepted, at the paths that the manifest sets. It is not known of an object that was
// made of another manifest, because that one may set other paths.
func (u *unit) drifted() bool {
	if u.item.Accepted == "" || u.live.Accepted == "" || u.tied() {
		return false
	}
	return u.live.Seen != u.item.Seen && u.live.Accepted != u.item.Accepted
}

// hadDrifted tells of an object that was not looked at whether it had drifted when it
// was looked at last.
func (u *unit) hadDrifted() bool { return u.live.Postponed && u.live.Drift != nil }

// step starts a step on the live object, with what was seen as its precondition.
func (u *unit) step(verb Verb, stage int, because Reason) Step {
	return Step{
		Verb: verb, Key: u.key, Version: u.item.Version, Stage: stage, Because: because,
		UID: u.live.UID, ResourceVersion: u.live.ResourceVersion, Marks: u.live.Marks, Finalizers: u.live.Finalizers,
		Referenced: u.live.Referenced, Scaled: u.live.Scaled != nil,
		Then: u.item,
	}
}
