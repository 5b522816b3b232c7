// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// Options tune a Store. Label and Reduce are required.
type Options struct {
	// Label is the key of the label that all dependents bear; its value is the
	// id of the owner. Only objects with it are watched.
	Label string
	// Reduce makes the observation of an object as the server sent it: without
	// Accepted, which is not kept, and with the value of Label as the owner's id.
	// It is quick, sends nothing and keeps nothing of the object.
	Reduce func(live *unstructured.Unstructured) plan.Observation
	// Changed is told what changed and was not the doing of the owner himself.
	// It must not block. May be nil.
	Changed func(Change)
	// Limit is how many reflectors run at most. Defaults to 500.
	Limit int
	// Linger is how long a reflector stays that nobody uses. Defaults to 1 minute.
	Linger time.Duration
	// Stale is how long a broken watch is believed. Defaults to 10 seconds.
	Stale time.Duration
	// Retry is how long after a refusal it is tried again; the whole cluster, if
	// there are namespaces to be watched instead, ten times as long. Defaults to
	// 1 minute.
	Retry time.Duration
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
	owners     map[string]map[spot]bool
	reflectors int
	// progress is closed and replaced when a place may have become usable.
	progress chan struct{}
	// timer calls tend when it is time to end or to try something.
	timer *time.Timer
}

// spot is a Place that can be compared.
type spot struct {
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
		kinds: map[kindKey]*kind{}, owners: map[string]map[spot]bool{}, progress: make(chan struct{}),
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

// progressed wakes those who wait. It is called with the lock.
func (s *Store) progressed() {
	close(s.progress)
	s.progress = make(chan struct{})
}

// Stats are counts of what there is, for metrics and tests.
type Stats struct {
	// Reflectors run; Synced of them know all their objects.
	Reflectors, Synced int
	// Records are the objects that are known, Graves those that are known to have left.
	Records, Graves int
	// Writing are the objects with requests of ours under way.
	Writing int
	// Refused are the namespaces, and whole types, that cannot be watched.
	Refused int
}

// Stats counts.
func (s *Store) Stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	stats := Stats{Reflectors: s.reflectors}
	for _, k := range s.kinds {
		for _, scope := range k.scopes {
			if scope.synced {
				stats.Synced++
			}
		}
		for _, space := range k.records.spaces {
			stats.Records += len(space)
		}
		stats.Graves += len(k.records.graves.entries)
		stats.Writing += len(k.records.writes)
		stats.Refused += len(k.refusals)
	}
	return stats
}
