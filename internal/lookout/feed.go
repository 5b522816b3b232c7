// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lookout

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// feed is what the watch of a place shows. The Lookout guards its fields.
type feed struct {
	lookout *Lookout
	at      place
	cancel  context.CancelFunc
	idle    *time.Timer // runs if nobody needs it any more
	over    bool

	// synced: the versions are those of the server, as far as the watch has come.
	synced   bool
	versions map[object]string
	progress string
	// floor is the newest version that was known when it was asked for all objects.
	floor string
}

// need keeps it from being ended.
func (f *feed) need() {
	if f.idle != nil {
		f.idle.Stop()
		f.idle = nil
	}
}

// asks notices that all objects are asked for, as the storage holds them. They cannot be
// older than what the watch has shown before, nor than what those who wait have seen until
// now; a watch that has only begun has nothing else to compare with.
func (f *feed) asks() {
	f.lookout.mu.Lock()
	defer f.lookout.mu.Unlock()
	f.floor = f.progress
	for at, waiters := range f.lookout.wanted[f.at.gvr] {
		if at.whole() || !f.shows(at) {
			continue
		}
		for _, mine := range waiters {
			f.floor = newer(mine.seen, f.floor)
		}
	}
}

// replace takes over the objects of a list. One that is older than what was known when
// it was asked for is that of a storage that was restored: versions mean something else
// there, also those that are the same.
func (f *feed) replace(versions map[object]string, progress string) {
	f.lookout.mu.Lock()
	defer f.lookout.mu.Unlock()
	if f.over {
		return
	}
	first, before := !f.synced, f.versions
	f.synced, f.versions, f.progress = true, versions, progress
	if first {
		f.lookout.arrange(f.at.gvr)
		f.begun()
	}
	if f.isRestored() {
		f.tellAll()
		return
	}
	for o, version := range versions {
		if before[o] != version {
			f.tell(o, version)
		}
	}
	for o := range before {
		if _, there := versions[o]; !there {
			f.tell(o, "")
		}
	}
	f.compareAll()
}

// isRestored tells whether the list that was taken over is provably older than it can be.
func (f *feed) isRestored() bool { return f.floor != "" && before(f.progress, f.floor) }

// set takes over an object from an event; an empty version means that it has gone.
func (f *feed) set(o object, version, progress string) {
	f.lookout.mu.Lock()
	defer f.lookout.mu.Unlock()
	if f.over {
		return
	}
	f.progress = progress
	if f.versions[o] == version {
		return
	}
	if f.versions[o] = version; version == "" {
		delete(f.versions, o)
	}
	f.tell(o, version)
}

// advance says how far the watch has come.
func (f *feed) advance(progress string) {
	f.lookout.mu.Lock()
	defer f.lookout.mu.Unlock()
	f.progress = progress
	f.compareAll()
}

// refused says that the place cannot be watched. What it showed before is kept: when
// it comes back, the difference counts.
func (f *feed) refused() {
	f.lookout.mu.Lock()
	defer f.lookout.mu.Unlock()
	if f.synced && !f.over {
		f.synced = false
		f.lookout.arrange(f.at.gvr)
	}
}

// tell wakes those who wait for an object, or for all.
func (f *feed) tell(o object, version string) {
	l := f.lookout
	for who, mine := range l.wanted[f.at.gvr][place{f.at.gvr, o.namespace, o.name}] {
		if mine.news(version, f.progress) {
			l.alarm.ring(who)
		}
	}
	f.tellWhole(o.namespace, version)
	if o.namespace != "" {
		f.tellWhole("", version)
	}
}

func (f *feed) tellWhole(namespace, version string) {
	for who, mine := range f.wholly(namespace) {
		if version == "" || !mine.vanishing {
			f.lookout.alarm.ring(who)
		}
	}
}

// wholly are those who wait for all objects of a namespace, or of all, if that is what is watched.
func (f *feed) wholly(namespace string) map[types.NamespacedName]*interest {
	if !f.at.whole() || f.at.namespace != "" && f.at.namespace != namespace {
		return nil
	}
	return f.lookout.wanted[f.at.gvr][place{f.at.gvr, namespace, ""}]
}

// begun wakes those who wait for all objects and do not know what happened before.
func (f *feed) begun() {
	for at, waiters := range f.lookout.wanted[f.at.gvr] {
		if !at.whole() || f.wholly(at.namespace) == nil {
			continue
		}
		for who, mine := range waiters {
			if !mine.begun {
				mine.begun = true
				f.lookout.alarm.ring(who)
			}
		}
	}
}

// tellAll wakes everybody, and takes it that they see what is there now.
func (f *feed) tellAll() {
	for at, waiters := range f.lookout.wanted[f.at.gvr] {
		if !f.shows(at) {
			continue
		}
		for who, mine := range waiters {
			mine.restart(f.versions[object{at.namespace, at.name}])
			f.lookout.alarm.ring(who)
		}
	}
}

// compareAll compares what every single waiter saw with what is watched.
func (f *feed) compareAll() {
	for at, waiters := range f.lookout.wanted[f.at.gvr] {
		if at.whole() || !f.shows(at) {
			continue
		}
		for who, mine := range waiters {
			if mine.news(f.versions[object{at.namespace, at.name}], f.progress) {
				f.lookout.alarm.ring(who)
			}
		}
	}
}

// shows tells whether the watch shows a place.
func (f *feed) shows(at place) bool {
	return f.at == at || f.at.whole() && (f.at.namespace == "" || f.at.namespace == at.namespace)
}
