// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// collect is how long a notification waits for further ones of the same owner.
	collect = 20 * time.Millisecond
	// burst is how many notifications of one owner follow each other at once; after that, one
	// comes in each interval: an object that changes all the time must not keep the
	// owner busy.
	burst    = 30
	interval = 5 * time.Second
)

// notifier notifies owners, each once of events at about the same time.
type notifier struct {
	call func(owner types.NamespacedName)

	mu      sync.Mutex
	closed  bool
	pending map[types.NamespacedName]*time.Timer
	// spent is when the owner will have its full burst again.
	spent map[types.NamespacedName]time.Time
}

func newNotifier(call func(types.NamespacedName)) *notifier {
	return &notifier{call: call, pending: map[types.NamespacedName]*time.Timer{}, spent: map[types.NamespacedName]time.Time{}}
}

// notify notifies the owner soon, unless that is going to happen anyway.
func (n *notifier) notify(owner types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || n.pending[owner] != nil {
		return
	}
	now := time.Now()
	spent := n.spent[owner]
	if spent.Before(now) {
		spent = now
	}
	after := max(collect, spent.Sub(now)-(burst-1)*interval)
	n.spent[owner] = spent.Add(interval)
	n.pending[owner] = time.AfterFunc(after, func() {
		n.mu.Lock()
		_, due := n.pending[owner]
		delete(n.pending, owner)
		n.mu.Unlock()
		if due {
			n.call(owner)
		}
	})
}

// forgetOwner stops the notification of an owner that refers to nothing any more. How much it
// was notified is remembered as long as it matters: it may refer to something again.
func (n *notifier) forgetOwner(owner types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if timer := n.pending[owner]; timer != nil {
		timer.Stop()
		delete(n.pending, owner)
	}
	now := time.Now()
	for other, spent := range n.spent {
		if spent.Before(now) {
			delete(n.spent, other)
		}
	}
}

func (n *notifier) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for owner, timer := range n.pending {
		timer.Stop()
		delete(n.pending, owner)
	}
}
