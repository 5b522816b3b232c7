// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// objectName is the name of an object of some type.
type objectName struct{ namespace, name string }

// records are the records of one type.
type records struct {
	group, kind string
	// spaces holds the records by namespace and name.
	spaces map[string]map[string]*record
	// graves are the versions at which objects left: what is not newer comes too
	// late and does not bring them back.
	graves memory[objectName, grave]
	// dead are objects that do not exist any more, in whatever version.
	dead memory[types.UID, struct{}]
	// writes are our own requests under way.
	writes map[objectName]*writing
}

// grave is what is known of an object that left.
type grave struct {
	version string
	// uid and ending are those of the last state that is known to be the last one.
	uid    types.UID
	ending plan.Finish
}

func newRecords(group, kind string) records {
	return records{group: group, kind: kind, spaces: map[string]map[string]*record{}, writes: map[objectName]*writing{}}
}

func (r *records) key(name objectName) plan.Key {
	return plan.Key{Group: r.group, Kind: r.kind, Namespace: name.namespace, Name: name.name}
}

func (r *records) get(name objectName) *record { return r.spaces[name.namespace][name.name] }

func (r *records) set(name objectName, live *record) {
	space := r.spaces[name.namespace]
	if space == nil {
		space = map[string]*record{}
		r.spaces[name.namespace] = space
	}
	space[name.name] = live
	r.graves.drop(name)
}

// bury removes the record, if there is one, and remembers the version, and the last state
// of the object, which may be nil.
func (r *records) bury(name objectName, version string, last *record, now time.Time) {
	if space := r.spaces[name.namespace]; space != nil {
		if delete(space, name.name); len(space) == 0 {
			delete(r.spaces, name.namespace)
		}
	}
	left := grave{version: version}
	if last != nil && last.ending != plan.FinishUnknown {
		left.uid, left.ending = last.uid, last.ending
	}
	r.graves.put(name, left, now)
}

// forget forgets who left.
func (r *records) forget() {
	r.graves = memory[objectName, grave]{}
	r.dead = memory[types.UID, struct{}]{}
}

func (r *records) isDead(uid types.UID) bool {
	_, dead := r.dead.get(uid)
	return dead
}

// late tells whether what was so at a version is known in a newer one.
func (r *records) late(name objectName, version string) bool {
	if known := r.get(name); known != nil {
		return before(version, known.version)
	}
	grave, left := r.graves.get(name)
	return left && compare(version, grave.version) <= 0
}

// left takes over that an object left the watch, at a version, with its last state.
func (r *records) left(name objectName, version string, last *record, now time.Time) (old *record, changed bool) {
	old = r.get(name)
	if old != nil && before(version, old.version) {
		return nil, false
	}
	if known, left := r.graves.get(name); old == nil && left && before(version, known.version) {
		return nil, false
	}
	r.bury(name, version, last, now)
	return old, old != nil
}

// gone takes over that an object does not exist any more, which a request of ours
// has shown.
func (r *records) gone(name objectName, uid types.UID, now time.Time) {
	r.dead.put(uid, struct{}{}, now)
	if old := r.get(name); old != nil && old.uid == uid {
		r.bury(name, old.version, nil, now)
	}
}
