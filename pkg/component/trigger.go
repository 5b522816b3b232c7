// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

// ErrTriggersFull is returned by Trigger when too many triggers are waiting.
var ErrTriggersFull = errors.New("too many triggers are waiting")

// maxTriggers is from how many components that wait for the controller on Trigger
// refuses more. It takes them at once; they pile up only while it does not run.
const maxTriggers = 1024

// Trigger makes the component of that name reconcile soon; namespace is empty for
// a cluster-scoped one. It never blocks: when too many triggers are waiting, it
// returns ErrTriggersFull. It fails before the setup.
func (r *Reconciler[T]) Trigger(namespace, name string) error {
	running := r.running.Load()
	if running == nil {
		return fmt.Errorf("reconciler %s: Trigger was called before SetupWithManager", r.settings.name)
	}
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if !running.triggers.trigger(key) {
		return fmt.Errorf("trigger %s: %w", key, ErrTriggersFull)
	}
	return nil
}

// triggers are on their way to the controller's queue, and say what a pass is for.
type triggers struct {
	news chan struct{} // holds one

	lock sync.Mutex
	// waiting are to be added to the queue, after a delay.
	waiting map[client.ObjectKey]time.Duration
	// light are the components of which nothing but dependents made them come again,
	// since their last pass began; false means that something else did, too.
	light map[client.ObjectKey]bool
	// delayed are passes for dependents that are due later.
	delayed map[client.ObjectKey]delayed
	// full makes every pass a full one.
	full bool
}

// delayed is a pass for dependents that is due later.
type delayed struct {
	timer *time.Timer
	at    time.Time
}

func newTriggers() *triggers {
	return &triggers{
		news: make(chan struct{}, 1), waiting: map[client.ObjectKey]time.Duration{}, light: map[client.ObjectKey]bool{},
		delayed: map[client.ObjectKey]delayed{},
	}
}

// trigger asks for a full pass.
func (t *triggers) trigger(key client.ObjectKey) bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	if _, known := t.waiting[key]; !known && len(t.waiting) >= maxTriggers {
		return false
	}
	t.light[key] = false
	t.add(key, 0)
	return true
}

// wake asks for a full pass of a component that something has woken. There are no more
// of them than components, so none is lost.
func (t *triggers) wake(key client.ObjectKey) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.light[key] = false
	t.add(key, 0)
}

// changed asks for a pass because dependents of the component changed.
func (t *triggers) changed(key client.ObjectKey, after time.Duration) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if after > settling {
		t.delay(key, after)
		return
	}
	if _, known := t.light[key]; !known {
		t.light[key] = true
	}
	t.add(key, after)
}

// delay asks for a pass later. Until then, whatever else makes the component come is
// not for its dependents only.
func (t *triggers) delay(key client.ObjectKey, after time.Duration) {
	at := time.Now().Add(after)
	if before, known := t.delayed[key]; known {
		if !at.Before(before.at) {
			return
		}
		before.timer.Stop()
	}
	t.delayed[key] = delayed{at: at, timer: time.AfterFunc(after, func() {
		t.lock.Lock()
		delete(t.delayed, key)
		t.lock.Unlock()
		t.changed(key, 0)
	})}
}

func (t *triggers) add(key client.ObjectKey, after time.Duration) {
	if before, known := t.waiting[key]; !known || after < before {
		t.waiting[key] = after
	}
	select {
	case t.news <- struct{}{}:
	default:
	}
}

// settling is how long it is waited for more of the same when a dependent says
// something new about itself.
const settling = 100 * time.Millisecond

// onChange asks for a pass over the owner of a dependent that changed. What has to be
// repaired does not wait.
func (t *triggers) onChange(owner reconciler.Owner, change reconciler.Change) {
	after := change.After
	if change.What == reconciler.EventStatus {
		after = max(after, settling)
	}
	t.changed(client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name}, after)
}

// begin tells, at the begin of a pass, whether it is only for dependents that changed.
func (t *triggers) begin(key client.ObjectKey) bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	light := t.light[key]
	delete(t.light, key)
	return light && !t.full
}

// source feeds the queue as long as the controller runs.
func (t *triggers) source() source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-t.news:
					for key, after := range t.take() {
						queue.AddAfter(reconcile.Request{NamespacedName: key}, after)
					}
				}
			}
		}()
		return nil
	})
}

// take returns what waits.
func (t *triggers) take() map[client.ObjectKey]time.Duration {
	t.lock.Lock()
	defer t.lock.Unlock()
	taken := t.waiting
	t.waiting = map[client.ObjectKey]time.Duration{}
	return taken
}
