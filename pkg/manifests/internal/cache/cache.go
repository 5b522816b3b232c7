// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"container/list"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"sync"
)

// Key is a digest of the sources of a value.
type Key [sha256.Size]byte

// KeyOf is the same for the same contents by the same names only.
func KeyOf[T ~string | ~[]byte](contents map[string]T) Key {
	hash := sha256.New()
	var length [8]byte
	add := func(content []byte) {
		binary.BigEndian.PutUint64(length[:], uint64(len(content)))
		_, _ = hash.Write(length[:])
		_, _ = hash.Write(content)
	}
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		add([]byte(name))
		add([]byte(contents[name]))
	}
	return Key(hash.Sum(nil))
}

// Cache keeps the values that were used last. It may be used by several goroutines
// at once. A value must not be changed after it was put.
type Cache[T any] struct {
	entries int
	bytes   int64

	mu    sync.Mutex
	byKey map[Key]*list.Element
	used  *list.List // of entry, the last used one in front
	size  int64
}

type entry[T any] struct {
	key   Key
	value T
	bytes int64
}

// New returns a cache of at most so many values, with at most so many bytes together.
func New[T any](entries int, bytes int64) *Cache[T] {
	return &Cache[T]{entries: entries, bytes: bytes, byKey: map[Key]*list.Element{}, used: list.New()}
}

// Get returns the value of the key, if the cache holds it.
func (c *Cache[T]) Get(key Key) (value T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.byKey[key]
	if !ok {
		return value, false
	}
	c.used.MoveToFront(element)
	return element.Value.(entry[T]).value, true
}

// Put keeps a value that counts so many bytes, in place of the values that were not used for the
// longest time. A value that is too large alone is not kept.
func (c *Cache[T]) Put(key Key, value T, bytes int64) {
	if bytes > c.bytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(c.byKey[key])
	c.byKey[key] = c.used.PushFront(entry[T]{key: key, value: value, bytes: bytes})
	c.size += bytes
	for len(c.byKey) > c.entries || c.size > c.bytes {
		c.drop(c.used.Back())
	}
}

func (c *Cache[T]) drop(element *list.Element) {
	if element == nil {
		return
	}
	dropped := c.used.Remove(element).(entry[T])
	delete(c.byKey, dropped.key)
	c.size -= dropped.bytes
}
