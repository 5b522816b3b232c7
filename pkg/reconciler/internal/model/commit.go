// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"reflect"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

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

// current returns the component if it is still what the reconcile is about; the
// resourceVersion may have moved on, as the engine sends such a write again.
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

// store writes the component, and takes over the answer.
func (m *Model) store(s *State, i int, c Component) {
	a := &s.actors[i]
	s.world.putComponent(int(a.component), c)
	a.snap = s.world.components[a.component]
	s.writes++
	s.disturbOthers(i)
}

// commit makes a record durable, if the component is still what the reconcile is about.
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

// removeFinalizer takes our finalizer off the component.
func (m *Model) removeFinalizer(s *State, i int) {
	a := &s.actors[i]
	s.note("take the finalizer off the component")
	if c, ok := m.current(s, a); ok {
		m.checkRelease(s, a)
		next := *c
		next.HasFinalizer = false
		m.store(s, i, next)
		s.world.components[a.component] = nil
	}
	a.reset()
}
