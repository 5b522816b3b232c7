// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"sync"
	"time"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/watch"
)

// Change is what happened to an object, by somebody else than the Reconciler.
type Change struct {
	Key  Key
	What Event
	// After is when it is worth to look at it, counted from now: some objects are
	// edited all the time, at places that nobody minds. It is zero if more than that
	// happened to the object.
	After time.Duration
}

// Event is a kind of change.
type Event string

// The kinds of changes.
const (
	// EventStatus: what the object says about itself changed, and nothing else.
	EventStatus Event = "Status"
	// EventContent: the object was edited, recreated, or is being deleted.
	EventContent Event = "Content"
	// EventVanished: the object is gone, or does not show any more whose it is.
	EventVanished Event = "Vanished"
)

var events = map[watch.What]Event{
	watch.Readiness: EventStatus, watch.Content: EventContent, watch.Vanished: EventVanished,
}

// followed are the owners whose objects are watched, whatever their incarnation.
type followed struct {
	lock   sync.Mutex
	owners map[string]Owner // by id
	ids    map[Owner]string
}

func (f *followed) add(id string, ref plan.OwnerRef) {
	owner := Owner{Group: ref.Group, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.owners == nil {
		f.owners, f.ids = map[string]Owner{}, map[Owner]string{}
	}
	f.owners[id], f.ids[owner] = owner, id
}

// drop forgets the owner and returns its id; empty if it was not followed.
func (f *followed) drop(owner Owner) (id string) {
	owner.UID = ""
	f.lock.Lock()
	defer f.lock.Unlock()
	id = f.ids[owner]
	delete(f.owners, id)
	delete(f.ids, owner)
	return id
}

func (f *followed) any() bool {
	f.lock.Lock()
	defer f.lock.Unlock()
	return len(f.owners) > 0
}

func (f *followed) of(id string) (owner Owner, ok bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	owner, ok = f.owners[id]
	return owner, ok
}

// changed passes a change on to whoever asked for it.
func (r *Reconciler) changed(change watch.Change) {
	owner, ok := r.followed.of(change.Owner)
	if !ok {
		return
	}
	told := Change{Key: change.Key, What: events[change.What]}
	if change.Edited {
		told.After = max(r.observer.Suspicions.Until(change.Owner, change.Key).Sub(r.settings.now()), 0)
	}
	r.settings.changed(owner, told)
}

// Leave ends the watches of an owner's objects, whatever its uid; the next Apply or
// Delete begins them again.
func (r *Reconciler) Leave(owner Owner) {
	if id := r.followed.drop(owner); id != "" {
		r.observer.Unfollow(id)
	}
}

// Watching tells whether the objects of any owner are watched.
func (r *Reconciler) Watching() bool { return r.followed.any() }

// Close ends all watches. The Reconciler remains usable, and reads every object from
// then on.
func (r *Reconciler) Close() { r.observer.Close() }
