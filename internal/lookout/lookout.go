// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lookout

import (
	"cmp"
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/pkg/cluster"
)

// Options tune a Lookout.
type Options struct {
	// Wake is called with a waiter when something that it waits for has changed. It must not block.
	Wake func(types.NamespacedName)
	// PerNamespace is how many objects of one type in one namespace are watched one
	// by one. Defaults to 200.
	PerNamespace int
	// PerType is how many watches of one type there are, before there is one for the
	// whole cluster. Defaults to 250.
	PerType int
	// Total is how many watches there are at most. Who waits for more is not woken.
	// Defaults to 500.
	Total int
	// Linger is how long a watch goes on that nobody needs any more. Defaults to 30 seconds.
	Linger time.Duration
}

func (o Options) withDefaults() Options {
	o.PerNamespace, o.PerType = cmp.Or(o.PerNamespace, 200), cmp.Or(o.PerType, 250)
	o.Total, o.Linger = cmp.Or(o.Total, 500), cmp.Or(o.Linger, 30*time.Second)
	return o
}

// Lookout watches what waiters wait for in one cluster, with one identity. It is safe
// for concurrent use.
type Lookout struct {
	options Options
	alarm   *alarm
	// follow watches a place until the context ends, and tells the feed.
	follow func(context.Context, place, *feed)
	ended  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	waiters map[types.NamespacedName]map[place]*interest
	wanted  map[schema.GroupVersionResource]map[place]map[types.NamespacedName]*interest
	feeds   map[place]*feed
	// waiting are the types of which watches are missing, because there are too many.
	waiting map[schema.GroupVersionResource]bool
}

// New returns a Lookout that watches nothing yet; close it after use.
func New(target cluster.Target, options Options) *Lookout {
	return newLookout(options, follower{target.Objects(), refusedDelay}.follow)
}

func newLookout(options Options, follow func(context.Context, place, *feed)) *Lookout {
	return &Lookout{
		options: options.withDefaults(), alarm: newAlarm(options.Wake), follow: follow,
		waiters: map[types.NamespacedName]map[place]*interest{},
		wanted:  map[schema.GroupVersionResource]map[place]map[types.NamespacedName]*interest{},
		feeds:   map[place]*feed{},
		waiting: map[schema.GroupVersionResource]bool{},
	}
}

// Set says what a waiter waits for from now on, in place of what it waited for before;
// nothing means that it does not wait any more. It sends nothing itself.
func (l *Lookout) Set(who types.NamespacedName, points []Point) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	before, after := l.waiters[who], make(map[place]*interest, len(points))
	changed := map[schema.GroupVersionResource]bool{}
	for _, point := range points {
		at := point.place()
		mine := before[at]
		if mine == nil {
			mine = &interest{}
			changed[at.gvr] = l.want(at, who, mine) || changed[at.gvr]
		}
		mine.renew(point.Seen, point.Vanishing)
		after[at] = mine
	}
	for at := range before {
		if after[at] == nil {
			changed[at.gvr] = l.unwant(at, who) || changed[at.gvr]
		}
	}
	if l.waiters[who] = after; len(after) == 0 {
		delete(l.waiters, who)
		l.alarm.forget(who)
	}
	for gvr, really := range changed {
		if really {
			l.arrange(gvr)
		}
	}
	for at, mine := range after {
		l.compare(at, who, mine)
	}
}

// Close ends all watches and waits for their end. Nobody is woken any more.
func (l *Lookout) Close() {
	l.mu.Lock()
	l.closed = true
	for at := range l.feeds {
		l.end(at)
	}
	l.mu.Unlock()
	l.alarm.close()
	l.ended.Wait()
}

// want adds an interest and tells whether nobody had it before.
func (l *Lookout) want(at place, who types.NamespacedName, mine *interest) bool {
	places := l.wanted[at.gvr]
	if places == nil {
		places = map[place]map[types.NamespacedName]*interest{}
		l.wanted[at.gvr] = places
	}
	first := len(places[at]) == 0
	if first {
		places[at] = map[types.NamespacedName]*interest{}
	}
	places[at][who] = mine
	return first
}

// unwant removes an interest and tells whether nobody has it any more.
func (l *Lookout) unwant(at place, who types.NamespacedName) bool {
	places := l.wanted[at.gvr]
	delete(places[at], who)
	if len(places[at]) > 0 {
		return false
	}
	if delete(places, at); len(places) == 0 {
		delete(l.wanted, at.gvr)
	}
	return true
}

// compare wakes a waiter if a watch already shows something else than what it saw.
func (l *Lookout) compare(at place, who types.NamespacedName, mine *interest) {
	for _, wider := range at.around() {
		f := l.feeds[wider]
		if f == nil || !f.synced {
			continue
		}
		if at.whole() && !mine.begun {
			mine.begun = true
			l.alarm.ring(who)
		}
		if !at.whole() && mine.news(f.versions[object{at.namespace, at.name}], f.progress) {
			l.alarm.ring(who)
		}
	}
}
