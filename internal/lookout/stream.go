// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lookout

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
)

const (
	// watchFor is how long a watch lasts at least; at most it is twice as long.
	watchFor = 15 * time.Minute
	// initialWithin is for the objects that a watch begins with. A server that does not
	// know of such watches never says that these were all.
	initialWithin = 20 * time.Second
	listWithin    = time.Minute
	pageSize      = 500
)

// stream is the watch of one place, from one connection to the next.
type stream struct {
	client metadata.ResourceInterface
	at     place
	feed   *feed
	// version is where the next watch goes on; empty if it has to begin with all objects.
	version string
	// plain: the server does not begin a watch with all objects, so they are listed.
	plain bool
}

// run watches until the watch ends. It is nil if the server has ended it in good order.
func (s *stream) run(ctx context.Context) error {
	if s.version == "" && !s.plain {
		err := s.initial(ctx)
		if _, unknown := errors.AsType[*unknownWatchError](err); !unknown {
			return err
		}
		s.plain = true
	}
	if s.version == "" {
		if err := s.list(ctx); err != nil {
			return err
		}
	}
	options := s.options()
	options.ResourceVersion = s.version
	return s.watch(ctx, options, nil)
}

// unknownWatchError means that the server cannot begin a watch with all objects.
type unknownWatchError struct{ err error }

func (e *unknownWatchError) Error() string { return e.err.Error() }

func (s *stream) options() metav1.ListOptions {
	options := metav1.ListOptions{
		AllowWatchBookmarks: true,
		TimeoutSeconds:      new(int64((watchFor + rand.N(watchFor)).Seconds())),
	}
	if s.at.name != "" {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", s.at.name).String()
	}
	return options
}

// initial is a watch that begins with all objects.
func (s *stream) initial(ctx context.Context) error {
	options := s.options()
	options.SendInitialEvents = new(true)
	options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	s.feed.asks()
	err := s.watch(ctx, options, map[object]string{})
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return &unknownWatchError{err}
	}
	return err
}

// list reads all objects.
func (s *stream) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	options, all := metav1.ListOptions{FieldSelector: s.options().FieldSelector, Limit: pageSize}, map[object]string{}
	s.feed.asks()
	for {
		page, err := s.client.List(ctx, options)
		if err != nil {
			return err
		}
		for i := range page.Items {
			all[object{page.Items[i].Namespace, page.Items[i].Name}] = page.Items[i].ResourceVersion
		}
		if options.Continue = page.Continue; options.Continue == "" {
			s.version = page.ResourceVersion
			s.feed.replace(all, s.version)
			return nil
		}
	}
}

// watch follows a watch. What comes before all initial objects are there is collected in initial.
func (s *stream) watch(ctx context.Context, options metav1.ListOptions, initial map[object]string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := s.client.Watch(ctx, options)
	if err != nil {
		return s.broken(err)
	}
	defer w.Stop()
	late := time.NewTimer(initialWithin)
	defer late.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-late.C:
			if initial != nil {
				return &unknownWatchError{fmt.Errorf("the server did not send all objects within %s", initialWithin)}
			}
		case event, open := <-w.ResultChan():
			switch {
			case !open && initial != nil:
				return errors.New("the watch ended before all objects were there")
			case !open:
				return nil
			case event.Type == watch.Error:
				return s.broken(apierrors.FromObject(event.Object))
			}
			if initial, err = s.take(event, initial); err != nil {
				return s.broken(err)
			}
		}
	}
}

// broken makes the next watch begin anew if this one cannot be continued.
func (s *stream) broken(err error) error {
	if !apierrors.IsTooManyRequests(err) && !apierrors.IsServerTimeout(err) {
		s.version = ""
	}
	return err
}

// take takes over one event, and returns what is collected.
func (s *stream) take(event watch.Event, initial map[object]string) (map[object]string, error) {
	found, err := meta.Accessor(event.Object)
	if err != nil {
		return initial, fmt.Errorf("understand an event of the watch: %w", err)
	}
	name, version := object{found.GetNamespace(), found.GetName()}, found.GetResourceVersion()
	switch {
	case event.Type == watch.Bookmark && initial != nil:
		if found.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
			return initial, nil
		}
		s.feed.replace(initial, version)
	case event.Type == watch.Bookmark:
		s.feed.advance(version)
	case initial != nil && event.Type == watch.Deleted:
		delete(initial, name)
		return initial, nil
	case initial != nil:
		initial[name] = version
		return initial, nil
	case event.Type == watch.Deleted:
		s.feed.set(name, "", version)
	default:
		s.feed.set(name, version, version)
	}
	s.version = version
	return nil, nil
}
