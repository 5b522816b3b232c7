// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// What is the kind of a change.
type What string

const (
	// Readiness: only the readiness of the object changed.
	Readiness What = "Status"
	// Output: only the values of outputs changed.
	Output What = "Output"
	// Content: anything else than the status and the server's own fields changed, such as the
	// content, the ownership metadata, finalizers or that it is being deleted; or it is new, or
	// another object of the same name.
	Content What = "Content"
	// Vanished: the object left the watch. It is gone, or it lost our label.
	Vanished What = "Vanished"
)

// Change is a change of an object of an owner.
type Change struct {
	// Owner is the value of our label. When an object goes to another owner, both
	// are notified.
	Owner string
	Key   plan.Key
	What  What
	// Edited: with Content, the same object has other content, and
	// nothing else about it changed, neither its owner nor its status.
	Edited bool
	// NamesOwner: the object has, or had before, also the annotation that names its owner in
	// clear text, as every object does that was written for an owner. Controllers copy labels to
	// objects that they create: an object that only ever had the label is hardly the owner's.
	NamesOwner bool
}

// difference returns the changes between two records, either of which may be missing, for all
// owners but one, which caused or saw them itself.
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
	case !old.isAsReadyAs(live):
		what = Readiness
	case old.status != live.status:
		what = Output
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
			NamesOwner: old.namesOwner(r.owner()) || live.namesOwner(r.owner()),
		})
	}
	add(old)
	add(live)
	return changes
}

// notify passes changes on. It is called without the lock.
func (s *Store) notify(changes []Change) {
	if s.options.Changed == nil {
		return
	}
	for _, change := range changes {
		contain(log.Log.WithName("watch"), "a mistake in the program that is notified of changes", func() { s.options.Changed(change) })
	}
}

// reduce makes the record of an object. A mistake in Reduce costs no more than a
// record that cannot be used.
func (s *Store) reduce(log logr.Logger, live *unstructured.Unstructured) (made *record) {
	log = log.WithValues("kind", live.GetKind(), "namespace", live.GetNamespace(), "name", live.GetName())
	contain(log, "a mistake in the program that reduces objects", func() { made = recordOf(s.options.Reduce(live)) })
	return cmp.Or(made, unreadable(live, s.options.Label))
}

// contain calls f, and logs a panic. Watches run in goroutines where it would end the process.
func contain(log logr.Logger, message string, f func()) {
	guard.Log(log, guard.Call(func() error { f(); return nil }), message)
}
