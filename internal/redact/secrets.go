// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"hash/maphash"
	"regexp"
	"sync"
)

const (
	// minLength is the least number of bytes of a value that is hidden: shorter
	// ones occur in any text.
	minLength = 6
	// maxBytes bounds what a set holds, over all forms of its values.
	maxBytes = 8 << 20
)

// head is how a value begins; values are looked up by it.
type head [minLength]byte

// Secrets is a set of values that must not be told. A nil set holds none, and
// still hides what looks like a credential. It is safe for concurrent use.
//
// The set is bounded. Once more was added than it can hold, it hides everything
// that stands in quotes.
type Secrets struct {
	mu       sync.RWMutex
	now, old generation
}

// generation is what was added between two calls of Renew.
type generation struct {
	byHead map[head][]string
	// public are hashes of values that everybody may see, because objects are named so:
	// there may be thousands, and they are kept as long as the set.
	public map[uint64]struct{}
	size   int
	full   bool
}

var seed = maphash.MakeSeed()

// isPublic tells whether everybody may see the value.
func (s *Secrets) isPublic(value string) bool {
	hash := maphash.String(seed, value)
	_, now := s.now.public[hash]
	_, before := s.old.public[hash]
	return now || before
}

// New returns an empty set.
func New() *Secrets {
	return &Secrets{}
}

// Renew forgets what was added before the last call of Renew. It is called when
// everything is about to be added anew, so that a set that lives long does not
// grow with every change of a value.
func (s *Secrets) Renew() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old, s.now = s.now, generation{}
}

// Add adds values: each as a whole, and the parts that a message may tell alone,
// such as its lines and the password of a URL. Values of less than 6 bytes are
// not hidden.
func (s *Secrets) Add(values ...string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, value := range values {
		s.now.add(value)
		for _, part := range partsOf(value) {
			s.now.add(part)
		}
	}
}

// isName tells what can be the name of an object and is long enough to be hidden.
var isName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.:-]{4,251}[A-Za-z0-9]$`)

// Publish says that the names of objects are no secrets, even if a Secret holds them:
// an inventory names them anyway.
func (s *Secrets) Publish(names ...string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if !isName.MatchString(name) {
			continue
		}
		if s.now.public == nil {
			s.now.public = map[uint64]struct{}{}
		}
		s.now.public[maphash.String(seed, name)] = struct{}{}
	}
}

func (g *generation) add(value string) {
	if len(value) < minLength {
		return
	}
	if g.byHead == nil {
		g.byHead = map[head][]string{}
	}
	if g.has(value) {
		return
	}
	for _, form := range formsOf(value) {
		if len(form) < minLength || g.has(form) {
			continue
		}
		if g.size += len(form); g.size > maxBytes {
			g.full = true
			return
		}
		h := head([]byte(form[:minLength]))
		g.byHead[h] = append(g.byHead[h], form)
	}
}

func (g *generation) has(form string) bool {
	for _, known := range g.byHead[head([]byte(form[:minLength]))] {
		if known == form {
			return true
		}
	}
	return false
}
