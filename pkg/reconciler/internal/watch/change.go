// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// What says in what an object changed.
type What int

const (
	// Readiness: only what its status means changed.
	Readiness What = iota
	// Content: anything else than the status and what the server keeps changed,
	// such as the content, marks, finalizers or that it is being deleted; or it
	// is new, or another object of the same name.
	Content
	// Vanished: the object left the watch. It is gone, or it lost our label.
	Vanished
)

// String returns the name of the constant.
func (w What) String() string {
	if w < Readiness || w > Vanished {
		return fmt.Sprintf("What(%d)", int(w))
	}
	return [...]string{"Readiness", "Content", "Vanished"}[w]
}

// Change says that an object of an owner changed.
type Change struct {
	// Owner is the value of our label. When an object changes hands, both
	// owners are told.
	Owner string
	Key   plan.Key
	What  What
	// Edited tells, with Content, that the same object has other content, and that
	// nothing else about it changed: nor whose it is, nor what it says about itself.
	Edited bool
	// Marked tells that the object says, or said before, in clear text whose it is, as
	// all do that were written for an owner. Controllers copy labels to objects that
	// they make: an object that never said more than the label is hardly the owner's.
	Marked bool
}

// difference returns what changed between two records, either of which may be
// missing, for all owners but one, who did or saw it himself.
func difference(key plan.Key, old, live *record, except string) []Change {
	var what What
	switch {
	case old == live:
		return nil
	case old == nil:
		what = Content
	case live == nil:
		what = Vanished
	case old.version == live.version && old.uid == live.uid:
		return nil
	case !old.same(live):
		what = Content
	case old.status != live.status:
		what = Readiness
	default:
		return nil
	}
	var changes []Change
	add := func(r *record) {
		if r == nil || r.owner() == "" || r.owner() == except || len(changes) > 0 && changes[0].Owner == r.owner() {
			return
		}
		changes = append(changes, Change{
			Owner: r.owner(), Key: key, What: what, Edited: what == Content && old.edited(live),
			Marked: old.isMarked(r.owner()) || live.isMarked(r.owner()),
		})
	}
	add(old)
	add(live)
	return changes
}

// tell passes changes on. It is called without the lock.
func (s *Store) tell(changes []Change) {
	if s.options.Changed == nil {
		return
	}
	for _, change := range changes {
		s.tellOne(change)
	}
}

func (s *Store) tellOne(change Change) {
	defer func() {
		if value := recover(); value != nil {
			log.Log.WithName("watch").Error(mistake(value), "a mistake in the program that is told about changes", "object", change.Key.String())
		}
	}()
	s.options.Changed(change)
}

// mistake describes what somebody panicked with. It may be anything, also a value
// of a Secret; so only what Go itself says is repeated.
func mistake(value any) error {
	if err, ok := value.(runtime.Error); ok {
		return fmt.Errorf("%w at %s", err, debug.Stack())
	}
	return fmt.Errorf("panic with a %T at %s", value, debug.Stack())
}

// reduce makes the record of an object. A mistake in Reduce costs no more than a
// record that cannot be used.
func (s *Store) reduce(ctx context.Context, live *unstructured.Unstructured) (made *record) {
	defer func() {
		if value := recover(); value != nil {
			log.FromContext(ctx).Error(mistake(value), "a mistake in the program that judges objects",
				"kind", live.GetKind(), "namespace", live.GetNamespace(), "name", live.GetName())
			made = unreadable(live, s.options.Label)
		}
	}()
	return recordOf(s.options.Reduce(live))
}
