// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"sync"
	"time"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// Writing is called before a request that writes an object for an owner. The function that it
// returns must be called after it, once, with the object as it was answered, in the form of Reduce:
// nil if the outcome is not known, Absent with the uid if the server answered that the object is
// gone.
//
// Events of the watch are recorded meanwhile, but no owner is notified before the answer arrives:
// the echo of the write is no change. If the write removes the object from another owner, that
// owner is notified.
func (s *Store) Writing(owner string, place Place, name string) (done func(answer *plan.Observation)) {
	at := place.object(name)
	s.mu.Lock()
	started := s.kinds[place.kind()]
	if started != nil {
		started.records.beginWrite(at)
	}
	s.mu.Unlock()
	var once sync.Once
	return func(answer *plan.Observation) {
		once.Do(func() { s.notify(s.wrote(owner, place, at, started, answer)) })
	}
}

func (s *Store) wrote(owner string, place Place, at objectName, started *kind, answer *plan.Observation) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[place.kind()]
	if k == nil {
		return nil
	}
	if k != started { // the type was not watched when the request was sent
		return k.read(owner, at, answer)
	}
	r := &k.records
	write := r.writes[at]
	old := write.base
	if live := k.recordAnswer(at, answer, old); live != nil {
		write.setAnswer(*live)
	}
	changes := k.difference(at, old, write.base, owner)
	if write.requests--; write.requests == 0 {
		delete(r.writes, at)
		changes = append(changes, k.difference(at, write.base, r.get(at), "")...)
	}
	return changes
}

// Read records the result of an owner's request, if it is newer than the known record: an object in
// the form of Reduce, or Absent with the uid that is gone. The owner is not notified; another one
// is, if its object changed.
func (s *Store) Read(owner string, place Place, name string, answer plan.Observation) {
	s.mu.Lock()
	var changes []Change
	if k := s.kinds[place.kind()]; k != nil {
		changes = k.read(owner, place.object(name), &answer)
	}
	s.mu.Unlock()
	s.notify(changes)
}

func (k *kind) read(owner string, at objectName, answer *plan.Observation) []Change {
	old := k.records.get(at)
	k.recordAnswer(at, answer, nil)
	if k.records.writes[at] != nil {
		return nil // when the requests have ended, new changes are notified
	}
	return k.difference(at, old, k.records.get(at), owner)
}

// state is the state of an object in an answer: it is as in the record, or, if there is none, the
// object is not watched any more.
type state struct {
	live *record
	// version is empty if it is not known, because the object does not exist any more.
	version string
}

// recordAnswer puts an answer into the records, and returns the state in it; nil means nothing. The
// object is the one that was known before, unless the answer has another uid.
func (k *kind) recordAnswer(at objectName, answer *plan.Observation, before *record) *state {
	if answer == nil || !k.covers(at.namespace) {
		return nil
	}
	r, now := &k.records, time.Now()
	switch answer.Existence {
	case plan.Absent:
		uid := answer.UID
		if uid == "" && before != nil {
			uid = before.uid
		}
		if uid == "" {
			return nil
		}
		r.confirmDeletion(at, uid, now)
		if before != nil && before.uid != uid {
			return nil
		}
		return &state{}
	case plan.Present:
		live := recordOf(*answer)
		k.newest = newer(live.version, k.newest)
		stale := r.isStale(at, live.version) || k.isUnlisted(at, live.version)
		if live.owner() != "" && !r.isDeleted(live.uid) {
			if !stale {
				r.set(at, live)
			}
			return &state{live, live.version}
		}
		if !stale {
			// The watch does not report the future of the object.
			r.delete(at, live.version, nil, now)
		}
		return &state{nil, live.version}
	}
	return nil
}

// writing spans the time from the first of our requests about an object to the answer to the last
// one.
type writing struct {
	requests int
	// base is the state that the owners know: the one before, or the
	// answered one. Nil if the object is in no record.
	base *record
	// version is the version of the newest answer.
	version string
}

func (r *records) beginWrite(at objectName) {
	write := r.writes[at]
	if write == nil {
		write = &writing{base: r.get(at)}
		r.writes[at] = write
	}
	write.requests++
}

// setAnswer records an answer, unless there was a newer one.
func (w *writing) setAnswer(to state) {
	if to.version != "" {
		if w.version != "" && before(to.version, w.version) || w.base != nil && before(to.version, w.base.version) {
			return
		}
		w.version = to.version
	}
	w.base = to.live
}
