// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lookout

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// arrange starts and ends the watches of a type, so that they fit what is wanted.
func (l *Lookout) arrange(gvr schema.GroupVersionResource) {
	wanted := make(map[place]bool, len(l.wanted[gvr]))
	for at := range l.wanted[gvr] {
		wanted[at] = true
	}
	needed := map[place]bool{}
	delete(l.waiting, gvr)
	for _, at := range arrange(gvr, wanted, limits{l.options.PerNamespace, l.options.PerType}, l.stands) {
		needed[at] = true
		if f := l.feeds[at]; f != nil {
			f.need()
		} else if len(l.feeds) < l.options.Total || l.makeRoom() {
			l.begin(at)
		} else {
			l.waiting[gvr] = true
		}
	}
	for at, f := range l.feeds {
		if at.gvr == gvr && !needed[at] && f.idle == nil {
			f.idle = time.AfterFunc(l.options.Linger, func() { l.expire(at, f) })
		}
	}
}

func (l *Lookout) stands(at place) standing {
	f := l.feeds[at]
	return standing{running: f != nil, synced: f != nil && f.synced}
}

// makeRoom ends a watch that nobody needs any more.
func (l *Lookout) makeRoom() bool {
	for at, f := range l.feeds {
		if f.idle != nil {
			l.end(at)
			return true
		}
	}
	return false
}

// begin starts the watch of a place.
func (l *Lookout) begin(at place) {
	ctx, cancel := context.WithCancel(context.Background())
	f := &feed{lookout: l, at: at, cancel: cancel, versions: map[object]string{}}
	l.feeds[at] = f
	l.ended.Go(func() { l.follow(ctx, at, f) })
}

// end ends the watch of a place.
func (l *Lookout) end(at place) {
	f := l.feeds[at]
	f.need()
	f.over = true
	f.cancel()
	delete(l.feeds, at)
}

// expire ends a watch that was not needed for long enough, and lets others take its room.
func (l *Lookout) expire(at place, f *feed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.over || f.idle == nil {
		return
	}
	l.end(at)
	for _, gvr := range slices.Collect(maps.Keys(l.waiting)) {
		l.arrange(gvr)
	}
}

// Stats says how many watches there are, and how many of them show what they watch.
type Stats struct{ Watches, Synced, Waiters int }

// Stats counts what goes on at this moment.
func (l *Lookout) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	stats := Stats{Watches: len(l.feeds), Waiters: len(l.waiters)}
	for _, f := range l.feeds {
		stats.Synced += number(f.synced)
	}
	return stats
}
