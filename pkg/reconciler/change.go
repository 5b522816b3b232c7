// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"hash/maphash"
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
	// happened to the object, unless the owner neither wants the object nor has
	// recorded it: then the object only bears his marks, and anybody may have copied them.
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
	owners map[string]follower // by id
	ids    map[Owner]string
}

// follower is an owner with the objects that he wants or has recorded.
type follower struct {
	Owner
	objects map[uint64]struct{}
}

// hashSeed is for the hashes of objects, which nobody else can foresee.
var hashSeed = maphash.MakeSeed()

// hashOf stands for an object of which nothing else has to be known.
func hashOf(key plan.Key) uint64 { return maphash.Comparable(hashSeed, key) }

// add follows an owner, whose objects are those given from now on.
func (f *followed) add(id string, ref plan.OwnerRef, keys []plan.Key) {
	owner := Owner{Group: ref.Group, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
	objects := make(map[uint64]struct{}, len(keys))
	for _, key := range keys {
		objects[hashOf(key)] = struct{}{}
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.owners == nil {
		f.owners, f.ids = map[string]follower{}, map[Owner]string{}
	}
	f.owners[id], f.ids[owner] = follower{owner, objects}, id
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

// of returns the owner, and whether he wants the object or has recorded it.
func (f *followed) of(id string, key plan.Key) (owner Owner, his, ok bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	found, ok := f.owners[id]
	_, his = found.objects[hashOf(key)]
	return found.Owner, his, ok
}

// changed passes a change on to whoever asked for it. An object that the owner neither
// wants nor has recorded is worth a look only if it says in full that it is his, and not
// over and over: whoever may write objects may also write our marks on them.
func (r *Reconciler) changed(change watch.Change) {
	owner, his, ok := r.followed.of(change.Owner, change.Key)
	if !ok || !his && !change.Marked {
		return
	}
	told, now := Change{Key: change.Key, What: events[change.What]}, r.settings.now()
	switch {
	case !his:
		told.After = max(r.observer.Suspicions.Stranger(change.Owner, now).Sub(now), 0)
	case change.Edited:
		told.After = max(r.observer.Suspicions.Until(change.Owner, change.Key).Sub(now), 0)
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
