// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/cluster"
)

const (
	// A watch that is not allowed or not possible is tried again after these delays, a broken one
	// sooner: an object that a component refers to can wait.
	refusedDelay, refusedLimit = time.Minute, 10 * time.Minute
	brokenDelay, brokenLimit   = time.Second, time.Minute
	jitter                     = 0.2
	listWithin                 = time.Minute
)

// metadataSource reads the resourceVersions of objects.
type metadataSource struct{ client metadata.ResourceInterface }

func (s metadataSource) List(ctx context.Context, options metav1.ListOptions) (map[types.NamespacedName]string, metav1.ListMeta, error) {
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	page, err := s.client.List(ctx, options)
	if err != nil {
		return nil, metav1.ListMeta{}, err
	}
	versions := make(map[types.NamespacedName]string, len(page.Items))
	for _, item := range page.Items {
		versions[types.NamespacedName{Namespace: item.Namespace, Name: item.Name}] = item.ResourceVersion
	}
	return versions, page.ListMeta, nil
}

func (s metadataSource) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return s.client.Watch(ctx, options)
}

func (s metadataSource) Convert(object runtime.Object) (string, bool) {
	found, err := meta.Accessor(object)
	if err != nil {
		return "", false
	}
	return found.GetResourceVersion(), true
}

// runner returns the function that keeps an informer up to date in a cluster.
func runner(objects *cluster.Objects, refused time.Duration) func(context.Context, *informer) {
	return func(ctx context.Context, i *informer) {
		i.refused = refused
		options := metav1.ListOptions{}
		if i.scope.name != "" {
			options.FieldSelector = fields.OneTermEqualSelector("metadata.name", i.scope.name).String()
		}
		source := metadataSource{objects.Metadata(i.scope.gvr).Namespace(i.scope.namespace)}
		NewReflector(source, i, options).Run(ctx)
	}
}

// informer is the state of the watch of a scope. It implements Handler. The Manager guards its
// fields.
type informer struct {
	manager *Manager
	scope   scope
	cancel  context.CancelFunc
	idle    *time.Timer // runs if no owner needs it any more
	ended   bool
	refused time.Duration // the first delay after a refusal

	// synced: the versions are the server's, as far as the watch has come.
	synced   bool
	versions map[types.NamespacedName]string
	progress string
	// floor is the newest version that was known when the server was asked for all objects.
	floor string
}

// stopIdleTimer stops the timer that would end it.
func (i *informer) stopIdleTimer() {
	if i.idle != nil {
		i.idle.Stop()
		i.idle = nil
	}
}

// Listing implements Handler. The objects cannot be older than the last event of the watch, nor
// than the reads of the owners until now; a watch that has only started has nothing else to compare
// with.
func (i *informer) Listing() {
	i.manager.mu.Lock()
	defer i.manager.mu.Unlock()
	i.floor = i.progress
	i.eachShown(func(at scope, _ types.NamespacedName, s *subscription) {
		if !at.isWhole() {
			i.floor = newest(s.observed, i.floor)
		}
	})
}

// Replace implements Handler. A list that is older than the state that the informer or an owner had
// read when it was requested comes from a storage that was restored: versions mean something else
// there, also equal ones.
func (i *informer) Replace(versions map[types.NamespacedName]string, progress string, _ bool) {
	i.manager.mu.Lock()
	defer i.manager.mu.Unlock()
	if i.ended {
		return
	}
	first, before := !i.synced, i.versions
	i.synced, i.versions, i.progress = true, versions, progress
	if first {
		i.manager.arrange(i.scope.gvr)
		i.notifyOfAll()
	}
	if i.floor != "" && isOlder(progress, i.floor) {
		i.notifyRestored()
		return
	}
	for object, version := range versions {
		if before[object] != version {
			i.notify(object, version)
		}
	}
	for object := range before {
		if _, exists := versions[object]; !exists {
			i.notify(object, "")
		}
	}
	i.compareAll()
}

func (i *informer) Set(object types.NamespacedName, _, version string) {
	i.set(object, version, version)
}

func (i *informer) Delete(object types.NamespacedName, _, version string) {
	i.set(object, "", version)
}

// set records the version of an object from an event; an empty version means that it is gone.
func (i *informer) set(object types.NamespacedName, version, progress string) {
	i.manager.mu.Lock()
	defer i.manager.mu.Unlock()
	if i.ended {
		return
	}
	i.progress = progress
	if i.versions[object] == version {
		return
	}
	if i.versions[object] = version; version == "" {
		delete(i.versions, object)
	}
	i.notify(object, version)
}

func (i *informer) Progress(progress string) {
	i.manager.mu.Lock()
	defer i.manager.mu.Unlock()
	i.progress = progress
	i.compareAll()
}

// Watching implements Handler: earlier events count also while no watch goes on.
func (i *informer) Watching(bool) {}

// Failed implements Handler. The state from before the refusal stays: when the watch comes back,
// the difference counts.
func (i *informer) Failed(err error, attempt int) (time.Duration, bool) {
	delay := backoff.Delay(attempt, brokenDelay, brokenLimit)
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err) {
		i.unsync()
		delay = backoff.Delay(attempt, i.refused, refusedLimit)
	}
	if err != nil {
		log.Log.V(1).Info("a watch ended and is tried again", "type", i.scope.gvr.String(),
			"namespace", i.scope.namespace, "name", i.scope.name, "after", delay, "reason", err.Error())
	}
	return backoff.Jitter(delay, jitter, backoff.Random()), true
}

// unsync notes that the scope cannot be watched.
func (i *informer) unsync() {
	i.manager.mu.Lock()
	defer i.manager.mu.Unlock()
	if i.synced && !i.ended {
		i.synced = false
		i.manager.arrange(i.scope.gvr)
	}
}

// eachShown calls f for each subscription in the scope of the informer.
func (i *informer) eachShown(f func(at scope, owner types.NamespacedName, s *subscription)) {
	for at, owners := range i.manager.subscriptions[i.scope.gvr] {
		if !i.scope.includes(at) {
			continue
		}
		for owner, s := range owners {
			f(at, owner, s)
		}
	}
}

// notify notifies the owners that depend on an object, or on all.
func (i *informer) notify(object types.NamespacedName, version string) {
	subscriptions := i.manager.subscriptions[i.scope.gvr]
	for owner, s := range subscriptions[scope{i.scope.gvr, object.Namespace, object.Name}] {
		if s.isNews(version, i.progress) {
			i.manager.notifier.notify(owner)
		}
	}
	for _, whole := range (scope{i.scope.gvr, object.Namespace, object.Name}).including()[1:] {
		if !i.scope.includes(whole) {
			continue
		}
		for owner, s := range subscriptions[whole] {
			if version == "" || !s.deletionOnly {
				i.manager.notifier.notify(owner)
			}
		}
	}
}

// notifyOfAll notifies the owners that depend on all objects and do not know earlier events.
func (i *informer) notifyOfAll() {
	i.eachShown(func(at scope, owner types.NamespacedName, s *subscription) {
		if at.isWhole() && !s.notifiedOfAll {
			s.notifiedOfAll = true
			i.manager.notifier.notify(owner)
		}
	})
}

// notifyRestored notifies all owners, and records that they observe the present state.
func (i *informer) notifyRestored() {
	i.eachShown(func(at scope, owner types.NamespacedName, s *subscription) {
		s.observed, s.notified = i.versions[at.object()], nil
		i.manager.notifier.notify(owner)
	})
}

// compareAll compares the version that each owner saw with the watched one.
func (i *informer) compareAll() {
	i.eachShown(func(at scope, owner types.NamespacedName, s *subscription) {
		if !at.isWhole() && s.isNews(i.versions[at.object()], i.progress) {
			i.manager.notifier.notify(owner)
		}
	})
}
