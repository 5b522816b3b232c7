// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// ErrTriggersFull is returned by Trigger when too many triggers are waiting.
var ErrTriggersFull = errors.New("too many triggers are waiting")

// maxTriggers is how many triggers can wait for the controller to take them. It
// takes them at once; they pile up only while it does not run.
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
	select {
	case running.triggers <- reconcile.Request{NamespacedName: key}:
		return nil
	default:
		return fmt.Errorf("trigger %s: %w", key, ErrTriggersFull)
	}
}

// triggers are on their way to the controller's queue.
type triggers chan reconcile.Request

func newTriggers() triggers { return make(triggers, maxTriggers) }

// wake triggers a component that comes again by itself, if later: so it does not
// matter much if there are too many triggers.
func (t triggers) wake(key client.ObjectKey) {
	select {
	case t <- reconcile.Request{NamespacedName: key}:
	default:
	}
}

// source feeds the queue as long as the controller runs.
func (t triggers) source() source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case request := <-t:
					queue.Add(request)
				}
			}
		}()
		return nil
	})
}
