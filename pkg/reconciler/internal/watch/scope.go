// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/informer"
)

// minRetry and maxRetry bound the pauses between attempts that fail. They are shorter than
// those for references: until the watch is back, each dependent is read.
const minRetry, maxRetry = 500 * time.Millisecond, 10 * time.Second

// objects lists and watches; *cluster.Objects does so.
type objects interface {
	List(ctx context.Context, r cluster.Resource, namespace string, options metav1.ListOptions) (*unstructured.UnstructuredList, error)
	Watch(ctx context.Context, r cluster.Resource, namespace string, options metav1.ListOptions) (apiwatch.Decoder, error)
}

// scope is a type in a namespace, or in the whole cluster, with a reflector. It implements
// informer.Source and informer.Handler. The Store guards the fields below log.
type scope struct {
	store     *Store
	kind      *kind
	namespace string
	cancel    context.CancelFunc
	log       logr.Logger

	// synced: all objects are known; failing: they are not, and the last attempt did not work.
	synced, failing bool
	// cutShort: the server has ended a watch before it had sent all objects.
	cutShort bool
	// downSince is since when the watch is broken; zero if it is not.
	downSince time.Time
	// newest is the newest version that the server sent, list the version of the last list.
	newest, list string
	// floor was the newest version of the type when the next list was requested.
	floor string
}

// isFresh reports whether the records of the scope can be used.
func (c *scope) isFresh(now time.Time, stale time.Duration) bool {
	return c.synced && (c.downSince.IsZero() || now.Sub(c.downSince) <= stale)
}

// start starts to watch. It is called with the lock.
func (s *Store) start(k *kind, namespace string) {
	logger := log.Log.WithName("watch").WithValues("type", k.key.gvr.String())
	if namespace != wide {
		logger = logger.WithValues("namespace", namespace)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &scope{store: s, kind: k, namespace: namespace, cancel: cancel, log: logger, downSince: time.Now()}
	k.scopes[namespace] = c
	s.reflectors++
	s.running.Go(func() {
		defer cancel()
		informer.NewReflector(c, c, metav1.ListOptions{LabelSelector: s.options.Label}).Run(ctx)
	})
}

// stop ends a reflector. It is called with the lock, and does not wait.
func (s *Store) stop(c *scope) {
	c.cancel()
	delete(c.kind.scopes, c.namespace)
	s.reflectors--
}

// List implements informer.Source.
func (c *scope) List(ctx context.Context, options metav1.ListOptions) (map[types.NamespacedName]*record, metav1.ListMeta, error) {
	list, err := c.store.objects.List(ctx, c.kind.resource, c.namespace, options)
	if err != nil {
		return nil, metav1.ListMeta{}, err
	}
	page := make(map[types.NamespacedName]*record, len(list.Items))
	for i := range list.Items {
		live := &list.Items[i]
		if converted, ok := c.Convert(live); ok {
			page[types.NamespacedName{Namespace: live.GetNamespace(), Name: live.GetName()}] = converted
		}
	}
	return page, metav1.ListMeta{ResourceVersion: list.GetResourceVersion(), Continue: list.GetContinue()}, nil
}

// Watch implements informer.Source.
func (c *scope) Watch(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
	events, err := c.store.objects.Watch(ctx, c.kind.resource, c.namespace, options)
	if err != nil {
		return nil, err
	}
	return apiwatch.NewStreamWatcher(events, apierrors.NewClientErrorReporter(http.StatusInternalServerError, "watch", "ClientWatchDecoding")), nil
}

// Convert implements informer.Source. An object that does not belong to the scope is left
// out: a server may send anything.
func (c *scope) Convert(object runtime.Object) (*record, bool) {
	live, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, false
	}
	namespace := live.GetNamespace()
	inside := c.namespace == wide || c.namespace == namespace
	if live.GetName() == "" || live.GetUID() == "" || !inside || c.kind.key.namespaced != (namespace != "") {
		return nil, false
	}
	return c.store.reduce(c.log, live), true
}

// Listing implements informer.Handler. The list cannot be older than anything that is known now.
func (c *scope) Listing() {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	c.floor = c.kind.newest
}

// Replace implements informer.Handler. A list that is older than an earlier event, or than the
// version that was known when it was requested, comes from a storage that was restored.
func (c *scope) Replace(objects map[types.NamespacedName]*record, version string, streaming bool) {
	c.change("", func(k *kind) []Change {
		restored := c.newest != "" && before(version, c.newest) || c.floor != "" && before(version, c.floor)
		if c.newest, c.list = version, version; restored {
			k.newest = version
		}
		changes := k.replace(c.namespace, objects, version, restored)
		c.synced, c.failing, c.cutShort, c.downSince = true, false, false, time.Time{}
		if !streaming {
			c.downSince = time.Now()
		}
		if delete(k.refusals, c.namespace); c.namespace == wide {
			clear(k.refusals)
		}
		k.newest = newer(version, k.newest)
		k.synced[c.namespace] = true
		c.store.arrange()
		return changes
	})
}

// Set implements informer.Handler. An event that is older than the last list is not new.
func (c *scope) Set(name types.NamespacedName, live *record, version string) {
	c.change(version, func(k *kind) []Change {
		if c.isListed(version) {
			return nil
		}
		return k.set(objectName{name.Namespace, name.Name}, live, false)
	})
}

// Delete implements informer.Handler.
func (c *scope) Delete(name types.NamespacedName, last *record, version string) {
	c.change(version, func(k *kind) []Change {
		if c.isListed(version) {
			return nil
		}
		return k.remove(objectName{name.Namespace, name.Name}, last, version)
	})
}

func (c *scope) isListed(version string) bool { return c.list != "" && compare(version, c.list) <= 0 }

// Progress implements informer.Handler.
func (c *scope) Progress(version string) {
	c.change(version, func(*kind) []Change { return nil })
}

// change changes records on behalf of the reflector, unless it is ended.
func (c *scope) change(version string, change func(*kind) []Change) {
	c.store.mu.Lock()
	var changes []Change
	if c.isRunning() && !c.store.closed {
		changes = change(c.kind)
		c.newest = newer(version, c.newest)
		c.kind.newest = newer(version, c.kind.newest)
	}
	c.store.mu.Unlock()
	c.store.notify(changes)
}

func (c *scope) isRunning() bool { return c.kind.scopes[c.namespace] == c }

// Watching implements informer.Handler.
func (c *scope) Watching(watching bool) {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	switch {
	case watching:
		c.downSince = time.Time{}
	case c.downSince.IsZero():
		c.downSince = time.Now()
	}
}

// Failed implements informer.Handler. It ends the reflector if the server does not let the
// operator list or watch, or if the type is not there any more; the Store starts another one
// later. A server that refuses the credentials may accept them in a moment, when they are
// rotated: that is no refusal of the scope.
func (c *scope) Failed(err error, attempt int) (time.Duration, bool) {
	if c.recordFailure(err) {
		return 0, false
	}
	if err != nil {
		c.log.V(1).Info("cannot watch at the moment", "error", err.Error())
	}
	return backoff.Jitter(backoff.Delay(attempt, minRetry, maxRetry), 1, backoff.Random()), true
}

// recordFailure records why an attempt failed, and reports whether the server refuses to list
// or watch the scope. A watch that is cut short for the first time is no failure yet: callers
// wait for the next one instead of reading each object.
func (c *scope) recordFailure(err error) (refused bool) {
	_, unserved := errors.AsType[*cluster.UnservedPathError](err)
	forbidden := apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsNotAcceptable(err)
	s, k := c.store, c.kind
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.isRunning() {
		return true
	}
	if !unserved && !forbidden {
		first := errors.Is(err, informer.ErrCutShort) && !c.cutShort && !c.failing
		c.cutShort = c.cutShort || first
		c.failing = !c.synced && !first
		s.progressed()
		return false
	}
	before := k.refusals[c.namespace]
	next := refusal{count: before.count + 1, unserved: unserved, lost: before.lost || c.synced}
	pause := s.options.Retry
	if c.namespace == wide && k.key.namespaced {
		pause *= wideRetry
	}
	if next.unserved || next.lost {
		pause = backoff.Delay(before.count, time.Second, pause)
	}
	next.until = time.Now().Add(pause)
	k.refusals[c.namespace] = next
	k.unsync(c.namespace)
	s.stop(c)
	s.arrange()
	return true
}
