// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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

// awaitedFor is for how long a version is awaited before that of a later write takes its place. What is older is of no use.
const awaitedFor = creating

// noteWrite notes the version that a write has made, and when the write was sent.
func (p *watchProgress) noteWrite(key client.ObjectKey, version string, sent time.Time) {
	if p.awaited == "" || sent.Sub(p.awaitedSince) > awaitedFor {
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
