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
}

// need keeps it from being ended.
func (f *feed) need() {
	if f.idle != nil {
		f.idle.Stop()
		f.idle = nil
	}
}

// replace takes over the objects of a list.
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
