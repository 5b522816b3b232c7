// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/internal/cluster"
)

// Manager watches the objects that owners refer to in one cluster, as one user. It is safe for
// concurrent use.
type Manager struct {
	limits   limits
	notifier *notifier
	// run keeps an informer up to date until the context ends.
	run   func(context.Context, *informer)
	ended sync.WaitGroup

	mu            sync.Mutex
	closed        bool
	owners        map[types.NamespacedName]map[scope]*subscription
	subscriptions map[schema.GroupVersionResource]map[scope]map[types.NamespacedName]*subscription
	informers     map[scope]*informer
	// waiting are the types of which watches are missing, because there are too many.
	waiting map[schema.GroupVersionResource]bool
}

// NewManager returns a Manager that watches nothing yet; close it after use. Notify is called with
// an owner when something that it depends on has changed. It must not block.
func NewManager(target cluster.Target, notify func(owner types.NamespacedName)) *Manager {
	return newManager(notify, runner(target.Objects(), refusedDelay))
}

func newManager(notify func(owner types.NamespacedName), run func(context.Context, *informer)) *Manager {
	return &Manager{
		limits: defaultLimits, notifier: newNotifier(notify), run: run,
		owners:        map[types.NamespacedName]map[scope]*subscription{},
		subscriptions: map[schema.GroupVersionResource]map[scope]map[types.NamespacedName]*subscription{},
		informers:     map[scope]*informer{},
		waiting:       map[schema.GroupVersionResource]bool{},
	}
}

// Set replaces the references of an owner; nothing means that it does not depend on anything any
// more. It sends nothing itself.
func (m *Manager) Set(owner types.NamespacedName, references []Reference) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	before, after := m.owners[owner], make(map[scope]*subscription, len(references))
	changed := map[schema.GroupVersionResource]bool{}
	for _, reference := range references {
		at := scopeOf(reference)
		s := before[at]
		if s == nil {
			s = &subscription{}
			if m.subscribe(at, owner, s) {
				changed[at.gvr] = true
			}
		}
		s.update(reference.ResourceVersion, reference.DeletionOnly)
		after[at] = s
	}
	for at := range before {
		if after[at] == nil && m.unsubscribe(at, owner) {
			changed[at.gvr] = true
		}
	}
	if m.owners[owner] = after; len(after) == 0 {
		delete(m.owners, owner)
		m.notifier.forgetOwner(owner)
	}
	for gvr := range changed {
		m.arrange(gvr)
	}
	for at, s := range after {
		m.compare(at, owner, s)
	}
}

// Add adds a reference of an owner, or replaces its version. It sends nothing itself.
func (m *Manager) Add(owner types.NamespacedName, reference Reference) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	at := scopeOf(reference)
	s := m.owners[owner][at]
	if s == nil {
		s = &subscription{}
		if m.owners[owner] == nil {
			m.owners[owner] = map[scope]*subscription{}
		}
		if m.owners[owner][at] = s; m.subscribe(at, owner, s) {
			m.arrange(at.gvr)
		}
	}
	s.update(reference.ResourceVersion, reference.DeletionOnly)
	m.compare(at, owner, s)
}

// Close ends all watches and waits for their end. No owner is notified any more.
func (m *Manager) Close() {
	m.mu.Lock()
	m.closed = true
	for _, i := range m.informers {
		m.endWatch(i)
	}
	m.mu.Unlock()
	m.notifier.close()
	m.ended.Wait()
}

// subscribe adds a subscription and reports whether it is the first one to the scope.
func (m *Manager) subscribe(at scope, owner types.NamespacedName, s *subscription) bool {
	scopes := m.subscriptions[at.gvr]
	if scopes == nil {
		scopes = map[scope]map[types.NamespacedName]*subscription{}
		m.subscriptions[at.gvr] = scopes
	}
	first := len(scopes[at]) == 0
	if first {
		scopes[at] = map[types.NamespacedName]*subscription{}
	}
	scopes[at][owner] = s
	return first
}

// unsubscribe removes a subscription and reports whether it was the last one to the scope.
func (m *Manager) unsubscribe(at scope, owner types.NamespacedName) bool {
	scopes := m.subscriptions[at.gvr]
	delete(scopes[at], owner)
	if len(scopes[at]) > 0 {
		return false
	}
	if delete(scopes, at); len(scopes) == 0 {
		delete(m.subscriptions, at.gvr)
	}
	return true
}

// compare notifies an owner if a watch already shows another version than the owner saw.
func (m *Manager) compare(at scope, owner types.NamespacedName, s *subscription) {
	for _, wider := range at.including() {
		i := m.informers[wider]
		if i == nil || !i.synced {
			continue
		}
		if at.isWhole() && !s.notifiedOfAll {
			s.notifiedOfAll = true
			m.notifier.notify(owner)
		}
		if !at.isWhole() && s.isNews(i.versions[at.object()], i.progress) {
			m.notifier.notify(owner)
		}
	}
}

// arrange starts and ends the watches of a type, so that they fit the subscriptions.
func (m *Manager) arrange(gvr schema.GroupVersionResource) {
	subscribed := make(map[scope]bool, len(m.subscriptions[gvr]))
	for at := range m.subscriptions[gvr] {
		subscribed[at] = true
	}
	needed := map[scope]bool{}
	delete(m.waiting, gvr)
	state := func(at scope) watchState {
		i := m.informers[at]
		return watchState{running: i != nil, synced: i != nil && i.synced}
	}
	for _, at := range arrange(gvr, subscribed, m.limits, state) {
		needed[at] = true
		if i := m.informers[at]; i != nil {
			i.stopIdleTimer()
		} else if len(m.informers) < m.limits.total || m.endIdle() {
			m.start(at)
		} else {
			m.waiting[gvr] = true
		}
	}
	for at, i := range m.informers {
		if at.gvr == gvr && !needed[at] && i.idle == nil {
			var timer *time.Timer
			timer = time.AfterFunc(m.limits.linger, func() { m.expire(i, &timer) })
			i.idle = timer
		}
	}
}

// endIdle ends a watch that no owner needs any more.
func (m *Manager) endIdle() bool {
	for _, i := range m.informers {
		if i.idle != nil {
			m.endWatch(i)
			return true
		}
	}
	return false
}

// start starts the watch of a scope.
func (m *Manager) start(at scope) {
	ctx, cancel := context.WithCancel(context.Background())
	i := &informer{manager: m, scope: at, cancel: cancel, versions: map[types.NamespacedName]string{}}
	m.informers[at] = i
	m.ended.Go(func() { m.run(ctx, i) })
}

// endWatch ends a watch.
func (m *Manager) endWatch(i *informer) {
	i.stopIdleTimer()
	i.ended = true
	i.cancel()
	delete(m.informers, i.scope)
}

// expire ends a watch that was not needed for long enough, and starts watches that wait for its
// place. A timer that was stopped too late, while its call waited for the lock, ends nothing.
func (m *Manager) expire(i *informer, timer **time.Timer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i.ended || i.idle != *timer {
		return
	}
	m.endWatch(i)
	for _, gvr := range slices.Collect(maps.Keys(m.waiting)) {
		m.arrange(gvr)
	}
}

// Stats counts the watches, the watches that are synced, and the owners that refer to anything.
type Stats struct{ Watches, Synced, Owners int }

// Stats returns the present counts.
func (m *Manager) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	stats := Stats{Watches: len(m.informers), Owners: len(m.owners)}
	for _, i := range m.informers {
		if i.synced {
			stats.Synced++
		}
	}
	return stats
}
