// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// Options tune a Store. Label and Reduce are required.
type Options struct {
	// Label is the key of the label that all dependents have; its value is the
	// id of the owner. Only objects with it are watched.
	Label string
	// Reduce makes the observation of an object as the server sent it: without
	// AppliedHash, which is not kept, and with the value of Label as the owner's id.
	// It is quick, sends nothing and keeps nothing of the object.
	Reduce func(live *unstructured.Unstructured) plan.Observation
	// Changed is called with each change, unless the owner itself made it. It must not block. May
	// be nil.
	Changed func(Change)
	// Limit is how many reflectors run at most. Defaults to 500.
	Limit int
	// Linger is how long a reflector stays that no owner uses. Defaults to 1 minute.
	Linger time.Duration
	// Stale is how long the records of a broken watch are used. Defaults to 10 seconds.
	Stale time.Duration
	// Retry is how long after a refusal it is tried again; the whole cluster, if
	// there are namespaces to be watched instead, ten times as long. Defaults to
	// 1 minute.
	Retry time.Duration
	// Namespaces starts no reflector for a whole cluster, but for types without namespaces.
	Namespaces bool
}

// wideRetry is how much longer the whole cluster is not tried again.
const wideRetry = 10

func (o Options) withDefaults() Options {
	o.Limit = cmp.Or(max(o.Limit, 0), 500)
	o.Linger = cmp.Or(max(o.Linger, 0), time.Minute)
	o.Stale = cmp.Or(max(o.Stale, 0), 10*time.Second)
	o.Retry = cmp.Or(max(o.Retry, 0), time.Minute)
	return o
}

// Store keeps the records of one target. It is safe for concurrent use.
type Store struct {
	objects objects
	options Options
	running sync.WaitGroup

	mu     sync.RWMutex
	closed bool
	kinds  map[kindKey]*kind
	// owners are the places that each owner keeps.
	owners     map[string]map[placeKey]bool
	reflectors int
	// progress is closed and replaced when a place may have become usable.
	progress chan struct{}
	// timer calls arrange when it is time to end or to try something.
	timer *time.Timer
}

// placeKey is a Place that can be compared.
type placeKey struct {
	kind      kindKey
	namespace string
}

// New returns a Store, which watches nothing until Keep is called.
func New(target cluster.Target, options Options) *Store {
	return newStore(target.Objects(), options)
}

func newStore(objects objects, options Options) *Store {
	return &Store{
		objects: objects, options: options.withDefaults(),
		kinds: map[kindKey]*kind{}, owners: map[string]map[placeKey]bool{}, progress: make(chan struct{}),
	}
}

// Close ends everything, and returns when nothing goes on any more. Later calls
// find and keep nothing. It must not be called by Changed.
func (s *Store) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		for _, k := range s.kinds {
			for _, scope := range k.scopes {
				s.stop(scope)
			}
		}
		clear(s.kinds)
		clear(s.owners)
		if s.timer != nil {
			s.timer.Stop()
		}
		s.progressed()
	}
	s.mu.Unlock()
	s.running.Wait()
}

// progressed lets the callers of Wait go on. It is called with the lock.
func (s *Store) progressed() {
	close(s.progress)
	s.progress = make(chan struct{})
}

// Keep sets the types and namespaces of the objects of an owner. Places that are needed are
// watched; the watch of a place that no owner needs any more ends after a while. The places replace
// those of the last call; nil means none.
func (s *Store) Keep(owner string, places []Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	before, after, changed := s.owners[owner], map[placeKey]bool{}, false
	for _, place := range places {
		at := placeKey{place.kind(), place.Namespace}
		if !place.isWatchable() || after[at] {
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
		s.arrange()
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

func (s *Store) unuse(at placeKey) {
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
		isDone, progress := s.waitIsDone(places), s.progress
		s.mu.RUnlock()
		if isDone {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-progress:
		}
	}
}

func (s *Store) waitIsDone(places []Place) bool {
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

// arrange ends and starts reflectors as they are needed, and runs again when time alone changes the
// need. It is called with the lock.
func (s *Store) arrange() {
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
		k.dropUnused()
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
			s.arrange()
		})
	}
}

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
		if all || covered || namespace != wide && !k.isUsed(namespace) {
			s.stop(scope)
		}
	}
}

// startNeeded starts the reflectors that are needed, may be tried, and fit below
// the limit: one for the whole cluster, and while that is refused one for each namespace.
func (s *Store) startNeeded(k *kind, now time.Time) {
	for _, namespace := range k.needed(s.options.Namespaces) {
		refusal, refused := k.refusals[namespace]
		if s.reflectors < s.options.Limit && (!refused || !now.Before(refusal.until)) {
			s.start(k, namespace)
		}
	}
}

// needed returns where reflectors are missing; if narrow, the whole cluster is not tried.
func (k *kind) needed(narrow bool) (namespaces []string) {
	narrow = narrow && k.key.namespaced
	if k.scopes[wide] == nil && !narrow {
		namespaces = append(namespaces, wide)
	}
	if refusal, refused := k.refusals[wide]; !narrow && (!refused || refusal.unserved || !k.key.namespaced) {
		return namespaces
	}
	for namespace := range k.users {
		if k.scopes[namespace] == nil {
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces
}

// due returns when time alone changes the needs of a type; zero is never.
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
		for _, namespace := range k.needed(s.options.Namespaces) {
			earlier(k.refusals[namespace].until)
		}
	}
	return next
}
