// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
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

// watchProgress tells how fresh the cache of the components of a namespace is. A watch shows changes in the order in which the server
// made them, and the informers of client-go store them in this order, and a new list at once. So a cache with a version that a write of
// ours has made has all that changed before that write was sent. A component that was listed long ago, and has the version of the
// list in the cache, was not changed until then.
type watchProgress struct {
	// freshAsOf is what is known; zero if nothing is.
	freshAsOf time.Time
	// awaited is a version of a component that the cache does not have yet; empty if there is none. The write that made it was
	// sent at awaitedSince.
	key          client.ObjectKey
	awaited      string
	awaitedSince time.Time
}

// noteWrite notes the version that a write has made, and when the write was sent. It takes the place of one that is awaited for so long
// that it is of no use.
func (p *watchProgress) noteWrite(key client.ObjectKey, version string, sent time.Time) {
	if p.awaited == "" || sent.Sub(p.awaitedSince) > creating {
		p.key, p.awaited, p.awaitedSince = key, version, sent
	}
}

// update returns as of when the cache is fresh. Cached returns the version of a component in the cache.
func (p *watchProgress) update(cached func(client.ObjectKey) (string, bool)) time.Time {
	if p.awaited == "" {
		return p.freshAsOf
	}
	version, ok := cached(p.key)
	if order, err := resourceversion.CompareResourceVersion(version, p.awaited); ok && err == nil && order >= 0 {
		if p.awaited = ""; p.awaitedSince.After(p.freshAsOf) {
			p.freshAsOf = p.awaitedSince
		}
	}
	return p.freshAsOf
}
