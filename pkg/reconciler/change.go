// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// Change is a change of an object by another client than the Reconciler.
type Change struct {
	Key  report.Key
	What Event
	// After is when Apply is worth a call, counted from now: some objects are edited all
	// the time, at fields that no manifest sets. It is zero if more than an edit happened to
	// the object, unless the object is neither desired nor recorded: then it only has the
	// label and the annotation of the owner, which any client may have copied.
	After time.Duration
}

// Event is a kind of change.
type Event string

// The kinds of changes.
const (
	// EventStatus: only the status of the object changed.
	EventStatus Event = "Status"
	// EventOutput: only the values of the outputs of the object changed.
	EventOutput Event = "Output"
	// EventContent: the object was edited, recreated, or is being deleted.
	EventContent Event = "Content"
	// EventVanished: the object is gone, or does not name its owner any more.
	EventVanished Event = "Vanished"
)

// watchedOwners are the owners of watched objects, without regard to their UIDs.
type watchedOwners struct {
	lock   sync.Mutex
	owners map[string]watchedOwner // by id
	ids    map[Owner]string
}

// watchedOwner is an owner with its desired and recorded objects.
type watchedOwner struct {
	Owner
	objects map[uint64]struct{}
}

// hashSeed makes the hashes of objects unpredictable.
var hashSeed = maphash.MakeSeed()

// hashOf returns the hash of a key, which needs less memory than the key.
func hashOf(key plan.Key) uint64 { return maphash.Comparable(hashSeed, key) }

// set replaces the objects of an owner.
func (f *watchedOwners) set(id string, ref plan.OwnerRef, keys []plan.Key) {
	owner := Owner(ref)
	owner.UID = ""
	objects := make(map[uint64]struct{}, len(keys))
	for _, key := range keys {
		objects[hashOf(key)] = struct{}{}
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.owners == nil {
		f.owners, f.ids = map[string]watchedOwner{}, map[Owner]string{}
	}
	f.owners[id], f.ids[owner] = watchedOwner{owner, objects}, id
}

// remove removes the owner and returns its id; empty if its objects were not watched.
func (f *watchedOwners) remove(owner Owner) (id string) {
	owner.UID = ""
	f.lock.Lock()
	defer f.lock.Unlock()
	id = f.ids[owner]
	delete(f.owners, id)
	delete(f.ids, owner)
	return id
}

// users returns owners that have the object among theirs, at most so many.
func (f *watchedOwners) users(key plan.Key, limit int) (users []Owner) {
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, owner := range f.owners {
		if _, uses := owner.objects[hashOf(key)]; uses && len(users) < limit {
			users = append(users, owner.Owner)
		}
	}
	return users
}

func (f *watchedOwners) any() bool {
	f.lock.Lock()
	defer f.lock.Unlock()
	return len(f.owners) > 0
}

// find returns the owner, and reports whether the object is desired or recorded.
func (f *watchedOwners) find(id string, key plan.Key) (owner Owner, listed, ok bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	found, ok := f.owners[id]
	_, listed = found.objects[hashOf(key)]
	return found.Owner, listed, ok
}
