// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lookout

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// settle is how long a wake waits for others of the same waiter.
	settle = 20 * time.Millisecond
	// burst is how many wakes of one waiter follow each other at once; after that, one
	// comes in each interval: an object that changes all the time must not keep the
	// waiter busy.
	burst    = 30
	interval = 5 * time.Second
)

// alarm wakes waiters, each once for what happens at about the same time.
type alarm struct {
	wake func(types.NamespacedName)

	mu      sync.Mutex
	closed  bool
	pending map[types.NamespacedName]*time.Timer
	// spent is when the waiter will have its full burst again.
	spent map[types.NamespacedName]time.Time
}

func newAlarm(wake func(types.NamespacedName)) *alarm {
	return &alarm{wake: wake, pending: map[types.NamespacedName]*time.Timer{}, spent: map[types.NamespacedName]time.Time{}}
}

// ring wakes the waiter soon, unless that is going to happen anyway.
func (a *alarm) ring(who types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.pending[who] != nil {
		return
	}
	now := time.Now()
	spent := a.spent[who]
	if spent.Before(now) {
		spent = now
	}
	after := max(settle, spent.Sub(now)-(burst-1)*interval)
	a.spent[who] = spent.Add(interval)
	a.pending[who] = time.AfterFunc(after, func() { a.fire(who) })
}

func (a *alarm) fire(who types.NamespacedName) {
	a.mu.Lock()
	_, due := a.pending[who]
	delete(a.pending, who)
	a.mu.Unlock()
	if due {
		a.wake(who)
	}
}

// forget lets nobody wake a waiter who does not wait any more. How much it was woken is
// remembered as long as it matters: it may wait again.
func (a *alarm) forget(who types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if timer := a.pending[who]; timer != nil {
		timer.Stop()
		delete(a.pending, who)
	}
	now := time.Now()
	for other, spent := range a.spent {
		if spent.Before(now) {
			delete(a.spent, other)
		}
	}
}

func (a *alarm) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for who, timer := range a.pending {
		timer.Stop()
		delete(a.pending, who)
	}
}
