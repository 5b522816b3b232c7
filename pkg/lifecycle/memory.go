// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/backoff"
)

// memory holds what this process remembers about objects from one reconcile to the next.
type memory struct {
	mu    sync.Mutex
	byKey map[client.ObjectKey]*remembered
}

// remembered is what is remembered about one object. Reconciles of one object do not
// overlap, so the fields need no lock.
type remembered struct {
	// idle counts the reconciles in a row that led to nothing and asked for another one.
	idle backoff.Streak
	// outdated counts those in a row whose status the definition of the type did not keep.
	outdated backoff.Streak
	// unserved counts those in a row in which the server did not serve the type.
	unserved backoff.Streak
	// attempts counts the errors in a row.
	attempts attempts
	// said is the last event that is sent once.
	said string
}

// of returns what is remembered about an object, which may be nothing yet.
func (m *memory) of(key client.ObjectKey) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.byKey[key]
	if !ok {
		if m.byKey == nil {
			m.byKey = map[client.ObjectKey]*remembered{}
		}
		known = &remembered{}
		m.byKey[key] = known
	}
	return known
}

func (m *memory) forget(key client.ObjectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byKey, key)
}
