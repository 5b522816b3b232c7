// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"time"
)

// Keep says which types and namespaces the objects of an owner live in. What is
// needed is watched; what nobody needs any more is ended after a while. The places
// replace those of the last call; nil lets go of everything.
func (s *Store) Keep(owner string, places []Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	before, after, changed := s.owners[owner], map[spot]bool{}, false
	for _, place := range places {
		at := spot{place.kind(), place.Namespace}
		if !place.watchable() || after[at] {
			continue
		}
		after[at] = true
		if !before[at] {
			s.use(place)
			changed = true
		}
	}
	for at := range before {
		if !after[at] {
			s.unuse(at)
			changed = true
		}
	}
	if s.owners[owner] = after; len(after) == 0 {
		delete(s.owners, owner)
	}
	if changed {
		s.tend()
	}
}

func (s *Store) use(place Place) {
	key := place.kind()
	k := s.kinds[key]
	if k == nil {
		k = newKind(key, place.Resource)
		s.kinds[key] = k
	}
	k.users[place.Namespace]++
	delete(k.idle, place.Namespace)
}

func (s *Store) unuse(at spot) {
	k := s.kinds[at.kind]
	if k.users[at.namespace]--; k.users[at.namespace] == 0 {
		delete(k.users, at.namespace)
		k.idle[at.namespace] = time.Now()
	}
}

// Wait returns when all the places are synced or cannot be watched, or when the
// context ends.
func (s *Store) Wait(ctx context.Context, places []Place) {
	for {
		s.mu.RLock()
		settled, progress := s.settled(places), s.progress
		s.mu.RUnlock()
		if settled {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-progress:
		}
	}
}

// settled tells whether waiting is of no use.
func (s *Store) settled(places []Place) bool {
	for _, place := range places {
		k := s.kinds[place.kind()]
		if k == nil {
			continue
		}
		pending := false
		for _, at := range []string{wide, place.Namespace} {
			scope := k.scopes[at]
			if scope == nil {
				continue
			}
			if scope.synced {
				pending = false
				break
			}
			pending = pending || !scope.failing
		}
		if pending {
			return false
		}
	}
	return true
}

// tend ends and starts reflectors as they are needed, and comes back when time
// alone changes what is needed. It is called with the lock.
func (s *Store) tend() {
	if s.closed {
		return
	}
	now := time.Now()
	for key, k := range s.kinds {
		if s.endUnused(k, now); len(k.users)+len(k.idle) == 0 {
			delete(s.kinds, key)
		}
	}
	var next time.Time
	for _, k := range s.kinds {
		s.startNeeded(k, now)
		k.sweep()
		if at := s.due(k); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	s.progressed()
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if !next.IsZero() {
		s.timer = time.AfterFunc(next.Sub(now), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.tend()
		})
	}
}

// endUnused ends the reflectors that nobody needs.
func (s *Store) endUnused(k *kind, now time.Time) {
	for namespace, since := range k.idle {
		if now.Sub(since) >= s.options.Linger {
			delete(k.idle, namespace)
			delete(k.refusals, namespace)
			delete(k.synced, namespace)
		}
	}
	all := len(k.users)+len(k.idle) == 0
	whole := k.scopes[wide]
	for namespace, scope := range k.scopes {
		covered := namespace != wide && whole != nil && whole.synced
		if all || covered || namespace != wide && !k.wanted(namespace) {
			s.stop(scope)
		}
	}
}

// startNeeded starts the reflectors that are needed, may be tried, and fit below
// the limit: one for the whole cluster, and while that is refused one for each namespace.
func (s *Store) startNeeded(k *kind, now time.Time) {
	for _, namespace := range k.needed() {
		refusal, refused := k.refusals[namespace]
		if s.reflectors < s.options.Limit && (!refused || !now.Before(refusal.until)) {
			s.start(k, namespace)
		}
	}
}

// needed returns where reflectors are missing.
func (k *kind) needed() (namespaces []string) {
	if k.scopes[wide] == nil {
		namespaces = append(namespaces, wide)
	}
	if refusal, refused := k.refusals[wide]; !refused || refusal.unserved || !k.key.namespaced {
		return namespaces
	}
	for namespace := range k.users {
		if k.scopes[namespace] == nil {
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces
}

// due returns when time alone changes what a type needs; zero is never.
func (s *Store) due(k *kind) (next time.Time) {
	earlier := func(at time.Time) {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	for _, since := range k.idle {
		earlier(since.Add(s.options.Linger))
	}
	if s.reflectors < s.options.Limit {
		for _, namespace := range k.needed() {
			earlier(k.refusals[namespace].until)
		}
	}
	return next
}
