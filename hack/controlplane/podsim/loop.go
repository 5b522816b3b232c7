// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package podsim

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// A loop brings the objects of one kind into order, one key at a time: when they
// change, and when their handler has asked for it.
type loop struct {
	name  string
	queue workqueue.TypedRateLimitingInterface[string]

	// handle looks at the object of a key. It may ask to be called again after a
	// time; zero means only when the object changes.
	handle func(ctx context.Context, key string) (again time.Duration, err error)
}

func newLoop(name string, handle func(context.Context, string) (time.Duration, error)) *loop {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](10*time.Millisecond, 5*time.Second)
	return &loop{name: name, handle: handle, queue: workqueue.NewTypedRateLimitingQueue(limiter)}
}

// watch makes every change of the informer's objects reach the handler.
func (l *loop) watch(informer cache.SharedIndexInformer) error {
	add := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			l.queue.Add(key)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    add,
		UpdateFunc: func(_, object any) { add(object) },
		DeleteFunc: add,
	})
	return err
}

// run works until the context ends.
func (l *loop) run(ctx context.Context, workers int) {
	context.AfterFunc(ctx, l.queue.ShutDown)
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for l.next(ctx) {
			}
		})
	}
	wait.Wait()
}

func (l *loop) next(ctx context.Context) bool {
	key, stopped := l.queue.Get()
	if stopped {
		return false
	}
	defer l.queue.Done(key)
	again, err := l.handle(ctx, key)
	switch {
	case err == nil:
		l.queue.Forget(key)
		if again > 0 {
			l.queue.AddAfter(key, again)
		}
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		// Our picture is old; the event that renews it may have come already.
		l.queue.AddRateLimited(key)
	case !errors.Is(err, context.Canceled):
		klog.ErrorS(err, "Handling failed", "kind", l.name, "key", key)
		l.queue.AddRateLimited(key)
	}
	return true
}
