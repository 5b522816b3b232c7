// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// Holder is the true owner of an object: the uid of a component, Unowned, or OtherOwner.
type Holder string

const (
	// Unowned holds objects that were made by hand, or orphaned.
	Unowned Holder = ""
	// OtherOwner is another component or tool.
	OtherOwner Holder = "other"
)

// Object is an object of the cluster. An Object in a State is never changed:
// it is replaced by a changed copy.
type Object struct {
	Key   plan.Key
	UID   int
	RV    int
	Value string // the fields that manifests set
	Extra bool   // another client added a field

	OwnerID string
	Ref     plan.OwnerRef
	Helm    bool // the ownership annotation of another tool
	// Controlled: a controller is among the ownerReferences.
	Controlled bool

	Ready    bool
	Deleting bool
	Held     bool // by a finalizer of another client
	Defines  []v1alpha1.TypeInfo
	Expires  bool // the cluster removes it after its end

	// The rest is the truth that no planner sees.

	Holder Holder
	// FormerHolder held the object before.
	FormerHolder Holder
	// Orphaned: its former holder has removed its own label and annotation.
	Orphaned bool
	// Stolen was the object from a component that knew its uid.
	Stolen bool
	// Made is the digest of the manifest that its holder wrote last.
	Made string
}

// Component is a component as the server has it; never changed, like an Object.
type Component struct {
	UID          Holder
	RV           int
	Version      int // of its spec
	Deleting     bool
	HasFinalizer bool // has our finalizer
	Key          int8 // the digest key of the inventory
	Inventory    []v1alpha1.InventoryItem
}

// World is the cluster.
type World struct {
	objects    []*Object    // ordered by key
	components []*Component // by index; nil if absent
	last       int          // the last uid or resourceVersion given
}

func (w *World) clone() World {
	return World{objects: slices.Clone(w.objects), components: slices.Clone(w.components), last: w.last}
}

func (w *World) find(key plan.Key) (int, bool) {
	return slices.BinarySearchFunc(w.objects, key, func(o *Object, k plan.Key) int { return o.Key.Compare(k) })
}

func (w *World) get(key plan.Key) *Object {
	if i, found := w.find(key); found {
		return w.objects[i]
	}
	return nil
}

// put stores a changed copy, with a new resourceVersion.
func (w *World) put(o Object) *Object {
	w.last++
	o.RV = w.last
	i, found := w.find(o.Key)
	if !found {
		w.objects = slices.Insert(w.objects, i, nil)
		w.last++
		o.UID = w.last
	}
	w.objects[i] = &o
	return &o
}

func (w *World) drop(key plan.Key) {
	if i, found := w.find(key); found {
		w.objects = slices.Delete(w.objects, i, i+1)
	}
}

func (w *World) putComponent(i int, c Component) {
	w.last++
	c.RV = w.last
	w.components[i] = &c
}

// removed lets the server delete an object: an object that nothing holds is gone at once; a
// namespace or a definition goes when it is swept.
func (w *World) removed(o *Object) {
	if !o.Held && !isNamespace(o.Key) && len(o.Defines) == 0 {
		w.drop(o.Key)
		return
	}
	if !o.Deleting {
		next := *o
		next.Deleting = true
		w.put(next)
	}
}

// sweepable reports whether the server's controllers have something to remove
// for a terminating object.
func (w *World) sweepable(o *Object) bool {
	if !o.Deleting {
		return false
	}
	inside := w.inside(o)
	if len(inside) == 0 {
		return !o.Held
	}
	return slices.ContainsFunc(inside, func(x *Object) bool { return !x.Deleting })
}

// sweep does the work of the namespace controller and of the finalizer of definitions.
func (w *World) sweep(o *Object) {
	for _, x := range w.inside(o) {
		w.removed(x)
	}
	if len(w.inside(o)) == 0 && !o.Held {
		w.drop(o.Key)
	}
}

// inside are the objects that go with a namespace or a definition.
func (w *World) inside(o *Object) []*Object {
	var found []*Object
	for _, x := range w.objects {
		if isNamespace(o.Key) && x.Key.Namespace == o.Key.Name || o.definesType(x.Key.GroupKind()) {
			found = append(found, x)
		}
	}
	return found
}

// inUse reports whether something is in a namespace or a definition that keeps a component from
// deleting it. It must not wait for the end of objects that it has itself orphaned there, but a
// definition waits for the instances of other owners.
func (w *World) inUse(o *Object, by Holder) bool {
	inside := w.inside(o)
	left := func(x *Object) bool { return x.Orphaned && x.FormerHolder == by }
	others := !isNamespace(o.Key) && slices.ContainsFunc(inside, func(x *Object) bool { return !left(x) })
	return len(inside) > 0 && (o.Deleting || others || !slices.ContainsFunc(inside, left))
}

func (o *Object) definesType(gk schema.GroupKind) bool {
	return slices.ContainsFunc(o.Defines, func(t v1alpha1.TypeInfo) bool { return t.Matches(gk.Group, gk.Kind) })
}

func isNamespace(key plan.Key) bool { return key.Group == "" && key.Kind == "Namespace" }

// customGroup is the group of the types that are served only if they are defined.
const customGroup = "example.com"

// defined reports whether a type can be used, and whether its definition is there at all.
func (w *World) defined(gk schema.GroupKind) (served, there bool) {
	if gk.Group != customGroup {
		return true, true
	}
	for _, o := range w.objects {
		if o.definesType(gk) {
			there = true
			served = served || o.Ready
		}
	}
	return served, there
}

// observe reads an object as the observer of the engine does. An object that is not desired is
// absent if its type is.
func (w *World) observe(key plan.Key, desired bool) plan.Observation {
	served, there := w.defined(key.GroupKind())
	if !served {
		if !desired && !there {
			return plan.Observation{Existence: plan.Absent}
		}
		return plan.Observation{Message: "the type is not served", NotServed: true}
	}
	o := w.get(key)
	if o == nil {
		return plan.Observation{Existence: plan.Absent}
	}
	return o.observation(desired)
}

func (o *Object) observation(desired bool) plan.Observation {
	ownership := o.OwnerID + " " + string(o.Ref.UID)
	seen := o.Value + "|" + ownership
	if o.Extra {
		seen += "|extra"
	}
	if o.Helm {
		seen += "|helm"
	}
	if o.Controlled {
		seen += "|controlled"
	}
	live := plan.Observation{
		Existence: plan.Present, HasOwnerReferences: o.Controlled, UID: uidOf(o.UID), ResourceVersion: strconv.Itoa(o.RV), ObservedHash: seen,
		Ownership: plan.Ownership{OwnerID: o.OwnerID, Ref: o.Ref},
	}
	if o.Helm {
		live.Ownership.OtherOwners = []string{"Helm release shop/theirs"}
	}
	if o.Controlled {
		live.Ownership.Controller = plan.Controller{Kind: "Deployment", Name: "theirs", UID: "theirs"}
	}
	if desired {
		live.AppliedHash = o.Value + "|" + ownership
	}
	if o.Deleting {
		live.DeletionTimestamp = startOfTime
	}
	if o.Held {
		live.Finalizers = []string{otherFinalizer}
	}
	switch {
	case o.Expires && o.Ready:
		live.Finish = plan.FinishComplete
	case o.Expires:
		live.Finish = plan.Unfinished
	}
	if o.Ready {
		live.Status.Readiness = plan.Ready
	} else {
		live.Status.Message = "not available"
	}
	return live
}

// sealed is the observation as the engine of an owner completes it. The seal is the same
// with each key, as if the label and annotation had been seen.
func sealed(owner plan.Owner, key int8, live plan.Observation) plan.Observation {
	live.ObservedHash, live.AppliedHash = keyed(live.ObservedHash, key), keyed(live.AppliedHash, key)
	if live.Existence == plan.Present {
		live.Seal = owner.ID + "/" + string(live.UID)
	}
	return live
}

const otherFinalizer = "example.com/wait"

func uidOf(n int) types.UID {
	if n == 0 {
		return ""
	}
	return types.UID("u" + strconv.Itoa(n))
}
