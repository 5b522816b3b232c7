// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"sync"
	"time"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

const (
	// suspicionsAfter is how many times in a row an object is looked at at once.
	suspicionsAfter = 5
	// From then on the time between two looks doubles from suspicionBase to suspicionLimit.
	suspicionBase  = 10 * time.Second
	suspicionLimit = 5 * time.Minute
	// suspicionQuiet is how long an object must not change, beyond the time that was
	// waited anyway, until the looks at it are forgotten.
	suspicionQuiet = 5 * time.Minute
)

// Suspicions bounds how often objects are read because something about them has
// changed. Most of what changes is no drift: some objects are written every second,
// at places that their manifests do not set. The zero value is ready to use, by
// several goroutines at once.
type Suspicions struct {
	lock    sync.Mutex
	byOwner map[string]map[plan.Key]suspicion
	swept   time.Time
}

// suspicion is about one object.
type suspicion struct {
	count   int
	seen    string      // at the last look
	until   time.Time   // not looked at again before
	delayed bool        // a look was refused, and is still to come
	drift   *plan.Drift // what the last look found
}

func (s suspicion) isOver(now time.Time) bool { return now.Sub(s.until) > suspicionQuiet }

// Allow tells whether an object of the owner may be read now, because its hash seen
// is not the recorded one. Asking again about the same hash that was allowed last
// is allowed, and does not count: it was read, and is still to be judged.
func (s *Suspicions) Allow(owner string, key plan.Key, seen string, now time.Time) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.sweep(now)
	known := s.byOwner[owner][key]
	switch {
	case known.isOver(now):
		known = suspicion{}
	case known.seen == seen:
		return true
	case now.Before(known.until):
		known.delayed = true
		s.byOwner[owner][key] = known
		return false
	}
	known.seen, known.delayed = seen, false
	s.set(owner, key, known.looked(now))
	return true
}

// looked is the suspicion after one look more.
func (s suspicion) looked(now time.Time) suspicion {
	s.count, s.until = s.count+1, now
	if s.count >= suspicionsAfter {
		s.until = now.Add(backoff.Delay(s.count-suspicionsAfter, suspicionBase, suspicionLimit))
	}
	return s
}

func (s *Suspicions) set(owner string, key plan.Key, known suspicion) {
	if s.byOwner == nil {
		s.byOwner = map[string]map[plan.Key]suspicion{}
	}
	if s.byOwner[owner] == nil {
		s.byOwner[owner] = map[plan.Key]suspicion{}
	}
	s.byOwner[owner][key] = known
}

// strangers is the key of all objects together that an owner neither wants nor has
// recorded. No object has it.
var strangers = plan.Key{}

// Stranger counts a change of an object that bears the marks of an owner who neither
// wants it nor has recorded it, and returns when it is worth to look what is the matter.
// There may be any number of such objects, so they count as one.
func (s *Suspicions) Stranger(owner string, now time.Time) time.Time {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.sweep(now)
	known := s.byOwner[owner][strangers]
	switch {
	case known.isOver(now):
		known = suspicion{}
	case now.Before(known.until):
		return known.until
	}
	s.set(owner, strangers, known.looked(now))
	return now
}

// Looked notes what is known of an object that Allow may refuse to look at from now on:
// how it has drifted, nil if it has not.
func (s *Suspicions) Looked(owner string, key plan.Key, drift *plan.Drift) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if known, suspected := s.byOwner[owner][key]; suspected {
		known.drift = drift
		s.byOwner[owner][key] = known
	}
}

// Last is what was noted by Looked.
func (s *Suspicions) Last(owner string, key plan.Key) *plan.Drift {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.byOwner[owner][key].drift
}

// Next is when the first look at an object of the owner that was refused is allowed;
// zero if none was. Nobody else wakes up for it: the object may not change any more.
func (s *Suspicions) Next(owner string) time.Time {
	s.lock.Lock()
	defer s.lock.Unlock()
	var next time.Time
	for _, known := range s.byOwner[owner] {
		if known.delayed && (next.IsZero() || known.until.Before(next)) {
			next = known.until
		}
	}
	return next
}

// Begin is called before all objects of the owner are looked at: what is refused then is
// what Next tells about, and nothing of before.
func (s *Suspicions) Begin(owner string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for key, known := range s.byOwner[owner] {
		known.delayed = false
		s.byOwner[owner][key] = known
	}
}

// Until is when an object of the owner may be looked at again because it changed; in
// the past if that is now.
func (s *Suspicions) Until(owner string, key plan.Key) time.Time {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.byOwner[owner][key].until
}

// Forget forgets an owner.
func (s *Suspicions) Forget(owner string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	delete(s.byOwner, owner)
}

// sweep drops, now and then, what is over.
func (s *Suspicions) sweep(now time.Time) {
	if now.Sub(s.swept) < suspicionQuiet {
		return
	}
	s.swept = now
	for owner, objects := range s.byOwner {
		for key, known := range objects {
			if known.isOver(now) {
				delete(objects, key)
			}
		}
		if len(objects) == 0 {
			delete(s.byOwner, owner)
		}
	}
}
