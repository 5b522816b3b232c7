// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// watchFor is how long a watch lasts at least; at most it is twice as long.
	watchFor = 15 * time.Minute
	// initialPause is how long the initial events of a watch may pause. A server that
	// does not support such watches never reports the end of them.
	initialPause = 30 * time.Second
	// initialLimit is the time limit for all of these events. On a busy type there would be no
	// pause.
	initialLimit = 5 * time.Minute
	// pageSize is the size of the pages of lists.
	pageSize = 500
	// stable is how long a watch has to live before its end counts as the first failure.
	stable = 30 * time.Second
	// orderly is how long a watch has to live before its end in good order is no failure. It is
	// tried again after the shortest delay then: a proxy may cut each watch after some seconds.
	orderly = time.Second
	// period is the shortest time from the beginning of a watch to the beginning of the next one.
	period = 100 * time.Millisecond
)

// Source is the source of a Reflector: objects of one type and one scope.
type Source[T any] interface {
	// List returns a page of the objects, as the storage holds them, and its metadata.
	List(ctx context.Context, options metav1.ListOptions) (map[types.NamespacedName]T, metav1.ListMeta, error)
	// Watch starts a watch of the objects.
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
	// Convert returns the part of an object of a watch that is kept, or false to drop the object.
	Convert(object runtime.Object) (T, bool)
}

// Handler receives the objects of a Reflector. The methods are called one after the other.
type Handler[T any] interface {
	// Listing is called before all objects are read, as the storage holds them.
	Listing()
	// Replace receives all objects. They come from a watch that goes on if streaming is
	// true; otherwise the watch only starts now.
	Replace(objects map[types.NamespacedName]T, version string, streaming bool)
	// Set receives an object that was added or has changed.
	Set(name types.NamespacedName, object T, version string)
	// Delete receives the last state of an object that was deleted or left the selection of the watch.
	Delete(name types.NamespacedName, object T, version string)
	// Progress reports that there was no other change up to a version.
	Progress(version string)
	// Watching reports that a watch goes on after a version that was received, or, if it is false,
	// that a watch has ended.
	Watching(bool)
	// Failed reports why an attempt ended; the error is nil if the server ended a watch in good
	// order, but soon and without an event. It returns after how long it is tried again; false ends
	// the Reflector.
	Failed(err error, attempt int) (time.Duration, bool)
}

// Reflector keeps a Handler up to date with the objects of a Source.
type Reflector[T any] struct {
	source   Source[T]
	handler  Handler[T]
	selector metav1.ListOptions
	// version is where the next watch goes on; empty if it has to start with all objects.
	version string
	// noWatchList: the server cannot send all objects at the start of a watch, so they are listed.
	noWatchList bool
}

// NewReflector returns a Reflector for the objects that the selectors of the options choose.
func NewReflector[T any](source Source[T], handler Handler[T], selector metav1.ListOptions) *Reflector[T] {
	return &Reflector[T]{source: source, handler: handler, selector: selector}
}

// Run lists and watches until the context ends or the Handler ends it.
func (r *Reflector[T]) Run(ctx context.Context) {
	attempt := 0
	for {
		start, version := time.Now(), r.version
		err := r.listAndWatch(ctx)
		if ctx.Err() != nil {
			return
		}
		lived := time.Since(start)
		delay := period - lived
		// A server ends a watch that cannot keep up with the writes. As long as each one brings
		// something, they follow each other at once; with pauses, the next would be further behind.
		if inOrder := err == nil; inOrder && (lived >= stable || r.version != version) {
			if lived >= stable || version != "" { // and it has sent more than the initial events
				attempt = 0
			}
		} else {
			if lived >= stable || lived >= orderly && inOrder {
				attempt = 0
			}
			var again bool
			if delay, again = r.handler.Failed(err, attempt); !again {
				return
			}
			attempt++
		}
		timer := time.NewTimer(delay)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// listAndWatch watches until the watch ends. It is nil if the server has ended it in good order.
func (r *Reflector[T]) listAndWatch(ctx context.Context) error {
	if r.version == "" && !r.noWatchList {
		options := r.watchOptions()
		options.SendInitialEvents = new(true)
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
		r.handler.Listing()
		err := r.watch(ctx, options, map[types.NamespacedName]T{})
		_, unknown := errors.AsType[*noWatchListError](err)
		if !unknown && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
			return err
		}
		r.noWatchList = true
	}
	if r.version == "" {
		if err := r.list(ctx); err != nil {
			return err
		}
	}
	options := r.watchOptions()
	options.ResourceVersion = r.version
	return r.watch(ctx, options, nil)
}

// ErrCutShort means that the server ended a watch before it had sent all objects. A busy API
// server does so, and accepts the next one.
var ErrCutShort = errors.New("the watch ended before all objects were there")

// noWatchListError means that the server does not support watches that start with all objects.
type noWatchListError struct{}

func (*noWatchListError) Error() string {
	return fmt.Sprintf("the server did not go on to send all objects for %s", initialPause)
}

func (r *Reflector[T]) watchOptions() metav1.ListOptions {
	options := r.selector
	options.AllowWatchBookmarks = true
	options.TimeoutSeconds = new(int64((watchFor + rand.N(watchFor)).Seconds()))
	return options
}

// list reads all objects. It names no version: a cache would send everything in one answer.
func (r *Reflector[T]) list(ctx context.Context) error {
	options, all := r.selector, map[types.NamespacedName]T{}
	options.Limit = pageSize
	r.handler.Listing()
	for {
		page, metadata, err := r.source.List(ctx, options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" {
			// The storage dropped the list's version before the last page. One page has no such
			// limit.
			options.Limit, options.Continue = 0, ""
			clear(all)
			continue
		}
		if err != nil {
			return err
		}
		for name, object := range page {
			all[name] = object
		}
		if options.Continue = metadata.Continue; options.Continue == "" {
			r.version = metadata.ResourceVersion
			r.handler.Replace(all, r.version, false)
			return nil
		}
	}
}

// watch follows a watch. Objects that arrive before all initial objects are there are collected in
// initial; it is nil for a watch that goes on after a version.
func (r *Reflector[T]) watch(ctx context.Context, options metav1.ListOptions, initial map[types.NamespacedName]T) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := r.source.Watch(ctx, options)
	if err != nil {
		return r.restartAfter(err)
	}
	defer w.Stop()
	if initial == nil {
		r.handler.Watching(true)
	}
	defer r.handler.Watching(false)
	limit := time.Now().Add(initialLimit)
	patience := time.NewTimer(initialPause)
	defer patience.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-patience.C:
			if initial != nil {
				return &noWatchListError{}
			}
		case event, open := <-w.ResultChan():
			switch {
			case !open && initial != nil:
				return ErrCutShort
			case !open:
				return nil
			case event.Type == watch.Error:
				return r.restartAfter(apierrors.FromObject(event.Object))
			}
			if initial != nil {
				patience.Reset(min(initialPause, time.Until(limit)))
			}
			if initial, err = r.handle(event, initial); err != nil {
				return r.restartAfter(err)
			}
		}
	}
}

// restartAfter makes the next watch start with all objects, unless the server is only busy. A
// server that was not there may come back with a storage that was restored, where a watch that goes
// on shows nothing until the version is reached again.
func (r *Reflector[T]) restartAfter(err error) error {
	if !apierrors.IsTooManyRequests(err) && !apierrors.IsServerTimeout(err) {
		r.version = ""
	}
	return err
}

// handle passes on one event, and returns the collected objects.
func (r *Reflector[T]) handle(event watch.Event, initial map[types.NamespacedName]T) (map[types.NamespacedName]T, error) {
	metadata, err := meta.Accessor(event.Object)
	if err != nil {
		return initial, fmt.Errorf("understand an event of the watch: %w", err)
	}
	version := metadata.GetResourceVersion()
	if event.Type == watch.Bookmark {
		switch {
		case initial == nil:
			r.handler.Progress(version)
		case metadata.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true":
			r.handler.Replace(initial, version, true)
		default:
			return initial, nil
		}
		r.version = version
		return nil, nil
	}
	name := types.NamespacedName{Namespace: metadata.GetNamespace(), Name: metadata.GetName()}
	object, ok := r.source.Convert(event.Object)
	switch {
	case !ok && initial != nil:
		return initial, nil
	case !ok:
	case initial != nil && event.Type == watch.Deleted:
		delete(initial, name)
		return initial, nil
	case initial != nil:
		initial[name] = object
		return initial, nil
	case event.Type == watch.Deleted:
		r.handler.Delete(name, object, version)
	default:
		r.handler.Set(name, object, version)
	}
	r.version = version
	return nil, nil
}
