// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// Owner is the component (or release) that owns the objects that are
// written.
type Owner struct {
	// ID is the value of the label owner-id: a hash over the cluster's uid and
	// the owner's group, kind, namespace and name.
	ID string
	// Ref is the owner in clear text.
	Ref OwnerRef
	// SAPOwnerID is the value that SAP component-operator-runtime gives to the same label of the owner's objects.
	// It is empty unless the record was inherited from there.
	SAPOwnerID string
	// Former is the name of the reconciler that ours replaces; empty if there is none.
	Former string
}

// hasFormer reports whether the only other owner of the object is the same component, under the reconciler that ours replaces.
func (o Owner) hasFormer(ownership Ownership) bool {
	return o.Former != "" && len(ownership.OtherOwners) == 1 && slices.Equal(ownership.Marks, []Mark{{o.Former, o.ID, o.Ref}})
}

// OwnerRef is the value of the annotation owner.
type OwnerRef struct {
	Group, Kind, Namespace, Name string
	// UID distinguishes incarnations of the same owner.
	UID types.UID
}

// String returns the annotation's value: group, kind, namespace, name and uid, separated by slashes.
func (r OwnerRef) String() string {
	return strings.Join([]string{r.Group, r.Kind, r.Namespace, r.Name, string(r.UID)}, "/")
}

// Title returns the form that messages use, such as "Shop shop/main".
func (r OwnerRef) Title() string {
	return Key{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}.String()
}

// SameOwner reports whether both are the same owner, perhaps in different incarnations.
func (r OwnerRef) SameOwner(other OwnerRef) bool {
	r.UID, other.UID = "", ""
	return r == other
}

// ParseOwnerRef reads the annotation's value; ok is false for anything else.
func ParseOwnerRef(value string) (ref OwnerRef, ok bool) {
	parts := strings.Split(value, "/")
	if len(parts) != 5 || parts[1] == "" || parts[3] == "" {
		return OwnerRef{}, false
	}
	return OwnerRef{Group: parts[0], Kind: parts[1], Namespace: parts[2], Name: parts[3], UID: types.UID(parts[4])}, true
}

// Ownership are the label, the annotation and the ownerReferences of an object that show its owner.
type Ownership struct {
	// OwnerID is the value of our label; empty if the object has none.
	OwnerID string
	// Ref is the value of our annotation; zero if absent or not readable.
	Ref OwnerRef
	// OtherOwners names owners according to other tools and reconcilers, such as "Helm release
	// shop/web". Owners that our own manifest sets are left out.
	OtherOwners []string
	// Marks are the labels and annotations of other reconcilers among them.
	Marks []Mark
	// SAPOwner is the annotation by which SAP component-operator-runtime names the owner; empty if absent.
	SAPOwner string
	// Controller is the controller among the object's ownerReferences; zero if there is
	// none. It is known of objects that were read.
	Controller Controller
}

// Mark is the label and the annotation of another reconciler.
type Mark struct {
	Reconciler, OwnerID string
	Ref                 OwnerRef
}

// Controller is an object that controls another one.
type Controller struct {
	Kind, Name string
	UID        types.UID
}

// relation is the relation of a live object to the owner.
type relation int

const (
	// unowned: the object has the label and annotation of no owner.
	unowned relation = iota
	// ours: the object has our label and annotation.
	ours
	// labelLost: the object lacks our label, but its annotation names us, or its record is sealed.
	labelLost
	// earlierIncarnation: the object has the label and annotation of an earlier incarnation of the owner.
	earlierIncarnation
	// inherited: the object belongs to the owner under another runtime. Either it has the label and annotation
	// of the reconciler that ours replaces; or it has the label of SAP component-operator-runtime, and
	// that runtime has recorded it, because the label does not tell the kind of the owner.
	inherited
	// ownedByOther: the object has the label or annotation of another owner, or has a
	// controller and none of ours. An object of ours stays ours if it gets a controller later.
	ownedByOther
)

// relate decides which owner a live object has, and names it if it is not us. The content of a
// record proves nothing, because other clients may be able to write the status of a component.
// Evidence is on the object itself, or in the seal of its record, which only the operator can make.
func relate(me Owner, item v1alpha1.InventoryItem, policies policy.Set, live Observation) (relation, string) {
	ownership := live.Ownership
	mine := ownership.OwnerID == me.ID && (ownership.Ref == (OwnerRef{}) || ownership.Ref.SameOwner(me.Ref))
	// An object that we adopted from another tool may still have the label and annotation of
	// its last owner: they go with a request of their own, and may come back.
	former := me.hasFormer(ownership)
	taken := policies.Adopts().Owned || ownership.mayAdoptFromAll(policies) || former
	if former && ownership.OwnerID == "" {
		return inherited, ownership.OtherOwners[0]
	}
	if len(ownership.OtherOwners) > 0 && !(mine && taken) {
		return ownedByOther, strings.Join(ownership.OtherOwners, " and ")
	}
	switch {
	case live.Shared != "":
		return ownedByOther, "all components of the operator, which share it"
	case item.Inherited && me.SAPOwnerID != "" && ownership.OwnerID == me.SAPOwnerID && ownership.Ref == OwnerRef{}:
		return inherited, me.Ref.Title() + " under SAP component-operator-runtime"
	case mine && (ownership.Ref == (OwnerRef{}) || ownership.Ref.UID == me.Ref.UID):
		return ours, ""
	case mine:
		return earlierIncarnation, "an earlier " + me.Ref.Title()
	case ownership.OwnerID != "" && ownership.Ref.SameOwner(me.Ref):
		// The same owner in another cluster, as after a restore from a backup.
		return earlierIncarnation, "an earlier " + me.Ref.Title()
	case ownership.OwnerID != "":
		return ownedByOther, ownerTitle(ownership)
	case ownership.Ref != (OwnerRef{}) && !ownership.Ref.SameOwner(me.Ref):
		return ownedByOther, ownership.Ref.Title()
	case ownership.Ref == me.Ref || isSealed(item, live):
		return labelLost, ""
	case ownership.Controller.UID != "" && ownership.Controller.UID != me.Ref.UID:
		return ownedByOther, "its controller " + ownership.Controller.Kind + " " + ownership.Controller.Name
	default:
		return unowned, ""
	}
}

// mayAdoptFromAll reports whether AdoptFrom names at least one of the other owners of the object, and AdoptBeside is the only other owner
// that AdoptFrom may leave out.
func (o Ownership) mayAdoptFromAll(policies policy.Set) bool {
	isFrom := func(owner string) bool { return slices.Contains(policies.AdoptFrom, owner) }
	isOther := func(owner string) bool { return !isFrom(owner) && owner != policies.AdoptBeside }
	return slices.ContainsFunc(o.OtherOwners, isFrom) && !slices.ContainsFunc(o.OtherOwners, isOther)
}

// hasOtherOwners reports whether an object of ours shows another owner, too. It stays ours only if the
// policy adopts objects of that owner.
func (u *unit) hasOtherOwners() bool {
	return u.relation == ours && len(u.live.Ownership.OtherOwners) > 0
}

// isSealed reports whether the record proves that the live object is ours.
func isSealed(item v1alpha1.InventoryItem, live Observation) bool {
	return live.Seal != "" && item.Seal == live.Seal
}

// seal puts the seal on the record of an object with an annotation that names us. So a record
// of another key is sealed as soon as the annotation is seen. An
// object that was given away is sealed no more.
func (u *unit) seal(me Owner) {
	switch {
	case u.item.Phase == vocabulary.PhaseReleased:
		u.item.Seal = ""
	case u.live.Existence == Present && u.live.Seal != "" && u.isOurs() && u.item.UID == u.live.UID && u.live.Ownership.Ref == me.Ref:
		u.item.Seal = u.live.Seal
	}
}

func ownerTitle(ownership Ownership) string {
	if ownership.Ref == (OwnerRef{}) && ownership.SAPOwner != "" {
		return ownership.SAPOwner + " of SAP component-operator-runtime"
	}
	if ownership.Ref == (OwnerRef{}) {
		return "the owner with id " + ownership.OwnerID
	}
	return ownership.Ref.Title()
}

// Owns reports whether label and annotation are the owner's own, and no other owner's. The
// annotation alone is enough, because it names the owner in full.
func (o Owner) Owns(ownership Ownership) bool {
	found, _ := relate(o, v1alpha1.InventoryItem{}, policy.Set{Adoption: v1alpha1.AdoptionPolicyIfUnowned}, Observation{Existence: Present, Ownership: ownership})
	return found == ours || found == labelLost
}

// isOurs reports whether the object may be changed and deleted without asking
// for an adoption.
func (u *unit) isOurs() bool { return u.relation == ours || u.relation == labelLost }

// isInherited reports whether the object is to be taken over from SAP component-operator-runtime or a former reconciler. Whatever the
// adoption policy is, it is ours.
func (u *unit) isInherited() bool { return u.relation == inherited }

// mayRemove reports whether an object that is no longer desired may be deleted. An object of an
// earlier incarnation of us must be sealed; otherwise we never adopted it, perhaps because we must
// not.
func (u *unit) mayRemove() bool {
	return u.isOurs() || u.isInherited() || u.relation == earlierIncarnation && isSealed(u.item, u.live) || u.isLeftOver()
}

// mayAdopt reports whether the adoption policy allows to adopt the live object.
func (u *unit) mayAdopt() bool {
	if u.live.Shared != "" {
		return false
	}
	if u.isTakenFrom() || u.isInherited() {
		return true
	}
	switch adopts := u.desired.Policies.Adopts(); u.relation {
	case unowned:
		return adopts.Unowned
	case earlierIncarnation:
		return adopts.EarlierIncarnation
	default:
		return adopts.Owned
	}
}

// isTakenFrom reports whether the live object belongs to the owners that the component takes its
// objects from, and to no other owner.
func (u *unit) isTakenFrom() bool {
	ownership := u.live.Ownership
	return u.relation == ownedByOther && ownership.mayAdoptFromAll(u.desired.Policies) &&
		ownership.OwnerID == "" && ownership.Ref == (OwnerRef{}) && ownership.Controller.UID == ""
}

// IsInheritedFromSAP reports whether the step is about an object that SAP component-operator-runtime has made for the owner.
func (s Step) IsInheritedFromSAP() bool {
	return s.Owner.SAPOwnerID != "" && s.Ownership.OwnerID == s.Owner.SAPOwnerID
}

// TakesOwnership reports whether the step puts our label and annotation on an object that lacks
// them: a creation, an adoption, the repair of a lost label. Its preconditions do not protect from a
// stale process: the process that leads now may have dropped the object from the manifests
// while it did not exist or was not ours.
func (s Step) TakesOwnership() bool {
	return s.Verb == VerbCreate || s.Reason == ReasonAdopted || s.Reason == ReasonOwnershipLost
}

// RemovesFormerOwner reports whether the label and annotation of a former owner are removed after the step: it adopts the object
// from any owner, from the owners that it names, or from its predecessor. The outcome of an earlier adoption may be unknown, and
// the former owner may have put its label back.
func (s Step) RemovesFormerOwner() bool {
	switch s.Reason {
	case ReasonAdopted, ReasonUnconfirmed, ReasonOwnershipShared:
		policies := s.Desired.Policies
		return policies.Adopts().Owned || len(policies.AdoptFrom) > 0 || s.IsInheritedFromSAP() || s.Owner.Former != ""
	default:
		return false
	}
}
