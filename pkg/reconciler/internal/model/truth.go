// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// truth is what the checks remember of the past. Its maps and slices are never
// changed in place.
type truth struct {
	// uids are the components as they are, or were last.
	uids []Holder
	// done are the purges that were carried out, and of what digest.
	done map[doneKey]string
	// once are the objects that were applied and must be left alone since.
	once map[doneKey]bool
	// finalizerRemoved are the components whose finalizer another client removed.
	finalizerRemoved map[Holder]bool
}

// doneKey is an object of a component.
type doneKey struct {
	holder Holder
	key    plan.Key
}

// forget drops what is known about an object that leaves the record.
func (t *truth) forget(k doneKey) {
	if _, known := t.done[k]; known {
		t.done = maps.Clone(t.done)
		delete(t.done, k)
	}
	if t.once[k] {
		t.once = maps.Clone(t.once)
		delete(t.once, k)
	}
}

// with returns a copy of a map with one more entry.
func with[K comparable, V any](m map[K]V, key K, value V) map[K]V {
	next := maps.Clone(m)
	if next == nil {
		next = map[K]V{}
	}
	next[key] = value
	return next
}
