// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"reflect"
	"strconv"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// The answers by which the server refuses a write.
var (
	errConflict    = errors.New("the object has changed")
	errNoNamespace = errors.New("the namespace does not exist")
	errTerminating = errors.New("the namespace is being deleted")
	errNotServed   = errors.New("the type is not served")
	errImmutable   = errors.New("a field cannot be changed")
	errRefused     = errors.New("denied by a webhook")
	errLost        = errors.New("the answer was lost")
)

// checkPreconditions finds the object of a write, if its preconditions hold.
func (w *World) checkPreconditions(s plan.Step, version bool) (*Object, error) {
	o := w.get(s.Key)
	if o == nil || s.UID != "" && uidOf(o.UID) != s.UID || version && strconv.Itoa(o.RV) != s.ResourceVersion {
		return nil, errConflict
	}
	return o, nil
}

// create is a POST, or an apply that demands absence.
func (w *World) create(s plan.Step, by Holder) error {
	served, _ := w.defined(s.Key.GroupKind())
	namespace := w.get(plan.Key{Kind: "Namespace", Name: s.Key.Namespace})
	switch {
	case !served:
		return errNotServed
	case s.Key.Namespace != "" && namespace == nil:
		return errNoNamespace
	case w.get(s.Key) != nil:
		return errConflict
	case s.Key.Namespace != "" && namespace.Deleting:
		return errTerminating
	}
	w.put(sent(Object{Key: s.Key, Ready: readyAtOnce(s.Key)}, s, by))
	return nil
}

// dryRun is a POST that changes nothing. If the name of the object is in use, nothing else is in
// the way.
func (w *World) dryRun(s plan.Step) error {
	served, _ := w.defined(s.Key.GroupKind())
	namespace := w.get(plan.Key{Kind: "Namespace", Name: s.Key.Namespace})
	switch {
	case !served:
		return errNotServed
	case s.Key.Namespace != "" && namespace == nil:
		return errNoNamespace
	case s.Key.Namespace != "" && namespace.Deleting:
		return errTerminating
	}
	return nil
}

// update is a PUT or an apply; an update that changes nothing gives no new resourceVersion.
func (w *World) update(o *Object, s plan.Step, by Holder, fixed bool) error {
	next := sent(*o, s, by)
	if fixed && next.Value != o.Value {
		return errImmutable
	}
	if s.Verb == plan.VerbReplace {
		// A PUT leaves nothing that the manifest does not have.
		next.Extra, next.Helm = false, false
	}
	if s.RemovesFormerOwner() {
		next.Helm = false // by a request of its own
	}
	if same := sameContent(&next, o); same {
		i, _ := w.find(o.Key)
		w.objects[i] = &next // the truth may have changed all the same
		return nil
	}
	next.Ready = o.Ready && (readyAtOnce(o.Key) || len(o.Defines) > 0)
	w.put(next)
	return nil
}

func sameContent(a, b *Object) bool {
	return a.Value == b.Value && a.Extra == b.Extra && a.OwnerID == b.OwnerID && a.Ref == b.Ref && a.Helm == b.Helm
}

// sent is the object with a manifest in it.
func sent(o Object, s plan.Step, by Holder) Object {
	m := manifestOf(s.Desired)
	o.Value, o.OwnerID, o.Ref = m.value, m.ownerID, m.ref
	o.Defines, o.Expires = s.Desired.Defines, s.Desired.HasTTL
	o.Holder, o.FormerHolder, o.Orphaned, o.Stolen, o.Made = by, Unowned, false, false, unkeyed(s.Desired.Digest)
	return o
}

// strip removes our label and annotation from an object: it has no holder from then on.
func (w *World) strip(o *Object) {
	next := *o
	next.OwnerID, next.Ref = "", plan.OwnerRef{}
	if next.Holder != OtherOwner && next.Holder != Unowned {
		next.FormerHolder, next.Holder = next.Holder, Unowned
	}
	next.Orphaned = true
	w.put(next)
}

// readyAtOnce reports whether objects of the type need no controller.
func readyAtOnce(key plan.Key) bool {
	switch key.Kind {
	case "Deployment", "Job", "CustomResourceDefinition":
		return false
	default:
		return true
	}
}

// The writes to the component itself.

// addFinalizer puts our finalizer on the component.
func (m *Model) addFinalizer(s *State, i int) {
	a := &s.actors[i]
	s.note("put the finalizer on the component")
	c, ok := m.current(s, a)
	if !ok {
		a.reset()
		return
	}
	next := *c
	next.HasFinalizer = true
	m.store(s, i, next)
	m.lookAt(s, a, m.keysOf(a), nil)
}

// current returns the component if it is still the one of the reconcile; the resourceVersion may
// have moved on, as the engine sends such a write again.
func (m *Model) current(s *State, a *actor) (*Component, bool) {
	c := s.world.components[a.component]
	same := c != nil && c.UID == a.snap.UID && c.Version == a.snap.Version && c.Deleting == a.snap.Deleting &&
		c.HasFinalizer == a.snap.HasFinalizer && sameItems(c.Inventory, a.snap.Inventory)
	return c, same
}

func sameItems(a, b []v1alpha1.InventoryItem) bool {
	if len(a) != len(b) {
		return false
	}
	return len(a) == 0 || &a[0] == &b[0] || reflect.DeepEqual(a, b)
}

// store writes the component, and keeps the answer.
func (m *Model) store(s *State, i int, c Component) {
	a := &s.actors[i]
	s.world.putComponent(int(a.component), c)
	a.snap = s.world.components[a.component]
	s.writes++
	s.disturbOthers(i)
}

// commit makes a record durable, if the component is still the one of the reconcile.
func (m *Model) commit(s *State, i int, items []v1alpha1.InventoryItem) bool {
	a := &s.actors[i]
	c, ok := m.current(s, a)
	if !ok {
		s.note("refused: the component has changed")
		return false
	}
	if sameItems(c.Inventory, items) && c.Key == a.key {
		return true
	}
	m.checkRecord(s, a, c, items)
	next := *c
	next.Inventory, next.Key = items, a.key
	m.store(s, i, next)
	return true
}

// removeFinalizer removes our finalizer from the component.
func (m *Model) removeFinalizer(s *State, i int) {
	a := &s.actors[i]
	s.note("remove the finalizer of the component")
	if c, ok := m.current(s, a); ok {
		m.checkFinalizerRemoval(s, a)
		next := *c
		next.HasFinalizer = false
		m.store(s, i, next)
		s.world.components[a.component] = nil
	}
	a.reset()
}
