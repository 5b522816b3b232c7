// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// walkLife is for how long the first list of a namespace counts, if the watch shows nothing newer: as long as an API server
// continues it. What may have changed more than five seconds ago is confirmed before hooks run, and before dependent objects are written.
const walkLife = 5 * time.Minute

// walk is the first list of the components of a namespace. A process that starts handles them in the order of their names, in
// which the server lists them, so a page is read when the first of its components is handled.
type walk[T Component] struct {
	namespace string
	// known are the components of the pages up to now that were not taken.
	known map[client.ObjectKey]T
	// at is when the list began. All of its pages show the components as they were then.
	at time.Time
	// last is the name of the last component of these pages, and rest continues the list; empty at its end.
	last, rest string
	// size is the size of the last page, and used is how many components were of use since it was read.
	size, used int
	progress   watchProgress
}

// fromWalk takes a component from the walk. It reads the next page for one that may be in it, if most of the last page was of
// use: in a fleet that has changed since, the other pages are not.
func (r *bulkReader[T]) fromWalk(ctx context.Context, key client.ObjectKey) (found T, at time.Time, ok bool) {
	w := r.walk
	if w != nil && (r.now().Sub(w.at) > walkLife || w.rest == "" && len(w.known) == 0) {
		r.walk, w = nil, nil
	}
	if w == nil || key.Namespace != w.namespace {
		return found, at, false
	}
	if key.Name > w.last && w.rest != "" && 2*w.used >= w.size {
		w.size, w.used = 0, 0
		var err error
		if w.rest, err = r.page(ctx, w.namespace, w.rest, r.waiting(w.namespace), func(found T) {
			w.known[client.ObjectKeyFromObject(found)], w.last = found, found.GetName()
			w.size++
		}); err != nil {
			logf.FromContext(ctx).V(1).Info("the list of components does not go on; another one is made", "namespace", w.namespace, "error", err.Error())
			r.walk = nil
			return found, at, false
		}
	}
	found, ok = w.known[key]
	delete(w.known, key)
	// The caller compares the version of the list with that in the cache after this. Otherwise, what changed in between would be missed.
	if at = w.progress.update(func(key client.ObjectKey) (string, bool) { return r.version(ctx, key) }); at.Before(w.at) {
		at = w.at
	}
	return found, at, ok
}
