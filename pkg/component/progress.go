// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watchProgress knows up to when the watch of the controller is complete. A watch shows changes in the order of the server. So when it
// shows a write of our own, it shows all that had changed before that write was sent, and a component that was listed long ago, and
// is still shown in the version of the list, was not changed until then.
type watchProgress struct {
	lock        sync.Mutex
	byNamespace map[string]*namespaceProgress
}

// namespaceProgress is that of one namespace, which may have a watch of its own.
type namespaceProgress struct {
	// until is up to when the watch is complete; zero if that is not known.
	until time.Time
	// awaited is the version that a component got by a write, which the watch is to show; empty if there is none.
	key     client.ObjectKey
	awaited string
	// sent is when the write was not sent yet.
	sent time.Time
}

// awaitedFor is when another write takes the place of one that the watch does not show.
const awaitedFor = time.Second

// noteWrite notes the version that a component got by a write of ours, and a time before the write was sent.
func (w *watchProgress) noteWrite(key client.ObjectKey, version string, sent time.Time) {
	w.lock.Lock()
	defer w.lock.Unlock()
	p := w.byNamespace[key.Namespace]
	if p == nil {
		p = &namespaceProgress{}
		w.byNamespace[key.Namespace] = p
	}
	if p.awaited == "" || sent.Sub(p.sent) > awaitedFor {
		p.key, p.awaited, p.sent = key, version, sent
	}
}

// completeUntil returns up to when the watch is complete in a namespace. Shown returns the version of a component that the watch shows.
func (w *watchProgress) completeUntil(namespace string, shown func(client.ObjectKey) (string, bool)) time.Time {
	w.lock.Lock()
	defer w.lock.Unlock()
	p := w.byNamespace[namespace]
	if p == nil {
		return time.Time{}
	}
	if p.awaited != "" {
		version, ok := shown(p.key)
		if order, err := resourceversion.CompareResourceVersion(version, p.awaited); ok && err == nil && order >= 0 {
			p.until, p.awaited = p.sent, ""
		}
	}
	return p.until
}
