// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/pkg/cluster"
)

const (
	// pageSize is the size of the pages of lists.
	pageSize = 500
	// shortPause and longPause bound the pauses between attempts that fail.
	shortPause, longPause = 500 * time.Millisecond, 10 * time.Second
	// lasting is how long an attempt works that makes the next pause a short one.
	lasting = 30 * time.Second
)

// scope is one reflector: a type in a namespace, or in the whole cluster.
type scope struct {
	kind      *kind
	namespace string
	cancel    context.CancelFunc
	// synced tells that all objects are known, failing that it is not and that
	// the last attempt did not work.
	synced, failing bool
	// downSince is since when the watch is broken; zero if it is not.
	downSince time.Time
	// newest is the newest version that the server told, list that of the last list.
	newest, list string
	// floor is what the newest version of the type was when it was asked for the list
	// that comes next. Empty if the answer may be older than that.
	floor string
}

func (c *scope) believed(now time.Time, stale time.Duration) bool {
	return c.synced && (c.downSince.IsZero() || now.Sub(c.downSince) <= stale)
}

// start begins to watch. It is called with the lock.
func (s *Store) start(k *kind, namespace string) {
	logger := log.Log.WithName("watch").WithValues("type", k.key.gvr.String())
	if namespace != wide {
		logger = logger.WithValues("namespace", namespace)
	}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logger))
	scope := &scope{kind: k, namespace: namespace, cancel: cancel, downSince: time.Now()}
	k.scopes[namespace] = scope
	s.reflectors++
	s.running.Go(func() {
		defer cancel()
		s.run(ctx, scope)
	})
}

// stop ends a reflector. It is called with the lock, and does not wait.
func (s *Store) stop(scope *scope) {
	scope.cancel()
	delete(scope.kind.scopes, scope.namespace)
	s.reflectors--
}

// run lists and watches until the context ends or the server refuses it.
func (s *Store) run(ctx context.Context, scope *scope) {
	source := &source{store: s, scope: scope}
	reflector := cache.NewReflectorWithOptions(source.listWatch(), nil, &sink{s, scope, source}, cache.ReflectorOptions{
		Logger:          new(klog.FromContext(ctx)),
		Name:            "watch",
		TypeDescription: scope.kind.key.gvr.String(),
		Backoff:         &wait.Backoff{Duration: shortPause, Cap: longPause, Steps: 10, Factor: 2, Jitter: 1},
	})
	reflector.WatchListPageSize = pageSize
	for attempt := 0; ; attempt++ {
		begun := time.Now()
		source.begin()
		err := contained(ctx, reflector)
		if ctx.Err() != nil || s.refused(scope, err) {
			return
		}
		if err != nil {
			klog.FromContext(ctx).V(1).Info("cannot watch at the moment", "error", err.Error())
		}
		if time.Since(begun) > lasting {
			attempt = 0
		}
		pause := time.NewTimer(wait.Jitter(backoff.Delay(attempt, shortPause, longPause), 1))
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		pause.Stop()
	}
}

// contained turns a panic, which only a mistake can cause, into an error.
func contained(ctx context.Context, reflector *cache.Reflector) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = mistake(value)
			klog.FromContext(ctx).Error(err, "a mistake in the program that watches")
		}
	}()
	return reflector.ListAndWatchWithContext(ctx)
}

// refused judges why an attempt ended, and ends the reflector if the server does
// not let us list or watch, or if the type is not there any more.
func (s *Store) refused(scope *scope, err error) bool {
	_, unserved := errors.AsType[*cluster.UnservedPathError](err)
	forbidden := apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsNotAcceptable(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	k := scope.kind
	if k.scopes[scope.namespace] != scope {
		return true
	}
	if !unserved && !forbidden {
		scope.failing = !scope.synced
		if scope.downSince.IsZero() {
			// The end of the watch may have been noticed before its beginning was.
			scope.downSince = time.Now()
		}
		s.progressed()
		return false
	}
	before := k.refusals[scope.namespace]
	next := refusal{count: before.count + 1, unserved: unserved, lost: before.lost || scope.synced}
	pause := s.options.Retry
	if scope.namespace == wide && k.key.namespaced {
		pause *= wideRetry
	}
	if next.unserved || next.lost {
		pause = backoff.Delay(before.count, time.Second, pause)
	}
	next.until = time.Now().Add(pause)
	k.refusals[scope.namespace] = next
	k.unsync(scope.namespace)
	s.stop(scope)
	s.tend()
	return true
}

// connected notices that a watch goes on where it was.
func (s *Store) connected(scope *scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	scope.downSince = time.Time{}
}

// disconnected notices that a watch ended.
func (s *Store) disconnected(scope *scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if scope.downSince.IsZero() {
		scope.downSince = time.Now()
	}
}

// asks notices that a list is asked for. A fresh one is not older than anything that
// was known before.
func (s *Store) asks(scope *scope, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if scope.floor = ""; fresh {
		scope.floor = scope.kind.newest
	}
}

// sink is where a reflector puts what it gets.
type sink struct {
	store  *Store
	scope  *scope
	source *source
}

func (s *sink) Add(object any) error {
	s.store.event(s.scope, object.(*reduced))
	return nil
}

func (s *sink) Update(object any) error { return s.Add(object) }

func (s *sink) Delete(object any) error {
	s.store.leave(s.scope, object.(*reduced))
	return nil
}

func (s *sink) Replace(list []any, version string) error {
	objects := make([]*reduced, 0, len(list))
	for _, object := range list {
		objects = append(objects, object.(*reduced))
	}
	s.store.replace(s.scope, objects, version, s.source.streams())
	return nil
}

func (s *sink) Resync() error { return nil }

// Bookmark implements cache.ReflectorBookmarkStore.
func (s *sink) Bookmark(version string) error {
	s.store.feed(s.scope, version, func(*kind) []Change { return nil })
	return nil
}
