// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import "time"

const (
	// maxMemory and maxAge bound what is remembered, for each type, of objects
	// that left. The server does not keep older events.
	maxMemory = 10_000
	maxAge    = 10 * time.Minute
)

// memory is a map that forgets the oldest entries.
type memory[K comparable, V any] struct {
	entries map[K]remembered[V]
	order   []moment[K]
}

type remembered[V any] struct {
	value V
	at    time.Time
}

type moment[K comparable] struct {
	key K
	at  time.Time
}

func (m *memory[K, V]) put(key K, value V, now time.Time) {
	if m.entries == nil {
		m.entries = map[K]remembered[V]{}
	}
	m.entries[key] = remembered[V]{value, now}
	m.order = append(m.order, moment[K]{key, now})
	for len(m.order) > maxMemory || now.Sub(m.order[0].at) > maxAge {
		oldest := m.order[0]
		if m.entries[oldest.key].at.Equal(oldest.at) {
			delete(m.entries, oldest.key)
		}
		m.order = m.order[1:]
	}
}

func (m *memory[K, V]) get(key K) (value V, ok bool) {
	entry, ok := m.entries[key]
	return entry.value, ok
}

func (m *memory[K, V]) drop(key K) { delete(m.entries, key) }
