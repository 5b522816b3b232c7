// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// TestTheWatchNotesWhichDeletionsOrphan: the garbage collector may have removed the finalizer before a reconcile reads the
// component.
func TestTheWatchNotesWhichDeletionsOrphan(t *testing.T) {
	alive := newWidget()
	state := func(deleting bool, finalizers ...string) *widget {
		obj := newWidget()
		if obj.Finalizers = finalizers; deleting {
			obj.DeletionTimestamp = &metav1.Time{Time: time.Unix(900, 0)}
		}
		return obj
	}
	deleting, orphaning := state(true, "ours"), state(true, "ours", "orphan")
	both := state(true, "foregroundDeletion", "orphan")
	for name, test := range map[string]struct {
		states       []*widget
		orphan, seen bool
	}{
		"an ordinary deletion": {[]*widget{alive, deleting}, false, true},
		"orphans":              {[]*widget{alive, orphaning}, true, true},
		"orphans, and the finalizer is gone again":       {[]*widget{alive, orphaning, deleting}, true, true},
		"orphans and foreground":                         {[]*widget{alive, both}, true, true},
		"orphans later":                                  {[]*widget{alive, deleting, orphaning, deleting}, true, true},
		"it was being deleted before":                    {[]*widget{deleting, deleting}, false, false},
		"it was orphaning before":                        {[]*widget{orphaning, deleting}, true, true},
		"the finalizer on an object that is not deleted": {[]*widget{alive, state(false, "orphan")}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cascades{}
			p, before := c.noted(), test.states[0]
			p.Create(event.CreateEvent{Object: before})
			for _, next := range test.states[1:] {
				if !p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: next}) {
					t.Error("an event is dropped")
				}
				before = next
			}
			if orphan, seen := c.of(before); orphan != test.orphan || seen != test.seen {
				t.Errorf("orphan %t, seen %t", orphan, seen)
			}
			another := newWidget()
			another.UID = "another"
			if _, seen := c.of(another); seen {
				t.Error("an earlier component of the name counts")
			}
			p.Delete(event.DeleteEvent{Object: before})
			if _, seen := c.of(before); seen {
				t.Error("it is remembered for ever")
			}
		})
	}
}
