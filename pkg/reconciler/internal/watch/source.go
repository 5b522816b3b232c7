// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/corbel-run/corbel/pkg/cluster"
)

// objects is what a source needs of a target; *cluster.Objects has it.
type objects interface {
	List(ctx context.Context, r cluster.Resource, namespace string, options metav1.ListOptions) (*unstructured.UnstructuredList, error)
	Watch(ctx context.Context, r cluster.Resource, namespace string, options metav1.ListOptions) (apiwatch.Decoder, error)
}

// source lists and watches for one reflector. Objects are reduced as they come.
type source struct {
	store *Store
	scope *scope

	mu sync.Mutex
	// plain tells that the server cannot send a list as the beginning of a watch.
	plain bool
	// The rest is about the attempt under way: whether a watch was begun, whether
	// it was begun anew because of the version, why it failed, and whether there
	// was a list instead.
	tried, anew bool
	failure     error
	listed      bool
}

// listWatch is what a reflector needs.
func (s *source) listWatch() *cache.ListWatch {
	return &cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
}

// begin starts an attempt: a list of whatever kind, and the watch after it.
func (s *source) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried, s.anew, s.failure, s.listed = false, false, nil, false
}

// streams tells whether the objects come from a watch that goes on.
func (s *source) streams() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.listed
}

var (
	errNoStreaming = errors.New("the server cannot send a list as the beginning of a watch")
	errNotBegun    = errors.New("the watch did not begin")
)

// list returns a page of what there is now. Reflectors call it when the watch
// failed to begin with a list.
func (s *source) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	failure := s.failure
	s.listed = true
	s.mu.Unlock()
	if failure != nil {
		return nil, failure // a list would fail, too, or be one burden more
	}
	// A page of what the storage holds, whatever the reflector says: a cache
	// would send everything in one answer.
	if options.Continue == "" {
		s.store.asks(s.scope, true)
	}
	options.LabelSelector, options.ResourceVersion, options.ResourceVersionMatch = s.store.options.Label, "", ""
	list, err := s.store.objects.List(ctx, s.scope.kind.resource, s.scope.namespace, options)
	if err != nil {
		return nil, err
	}
	page := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: list.GetResourceVersion(), Continue: list.GetContinue()}}
	for i := range list.Items {
		if told := s.reduce(ctx, &list.Items[i]); told != nil {
			page.Items = append(page.Items, runtime.RawExtension{Object: told})
		}
	}
	return page, nil
}

func (s *source) watch(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
	first := options.SendInitialEvents != nil && *options.SendInitialEvents
	if first {
		if err := s.mayBegin(); err != nil {
			return nil, err
		}
		// With a version, what a server knows that lags behind is enough.
		s.store.asks(s.scope, options.ResourceVersion == "")
	}
	options.LabelSelector = s.store.options.Label
	events, err := s.store.objects.Watch(ctx, s.scope.kind.resource, s.scope.namespace, options)
	if err != nil && first {
		return nil, s.failed(err)
	}
	if err != nil {
		return nil, err
	}
	stream := &stream{source: s, ctx: ctx, events: events}
	if first {
		stream.first()
	} else {
		s.store.connected(s.scope)
	}
	return apiwatch.NewStreamWatcher(stream, apierrors.NewClientErrorReporter(http.StatusInternalServerError, "watch", "ClientWatchDecoding")), nil
}

// mayBegin tells whether another beginning of a watch is tried. Reflectors repeat
// one that was cut short at once, and without an end.
func (s *source) mayBegin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.plain:
		return errNoStreaming
	case s.tried:
		if s.failure == nil {
			s.failure = errors.New("the watch ended before all objects were there")
		}
		return errNotBegun
	}
	s.tried = true
	return nil
}

// failed judges why a watch did not begin. The reflector is told the error itself
// only if it is one about the version, which makes it try again with another: for
// others it would pause in a way that nothing can end.
func (s *source) failed(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case isAboutVersion(err) && !s.anew:
		s.tried, s.anew = false, true
		return err
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		s.plain = true
		return errNoStreaming
	}
	s.failure = err
	return errNotBegun
}

func isAboutVersion(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// reduce returns what is kept of an object, or nil if it has no business here: a
// server may send anything.
func (s *source) reduce(ctx context.Context, live *unstructured.Unstructured) *reduced {
	name, namespace := live.GetName(), live.GetNamespace()
	inside := s.scope.namespace == wide || s.scope.namespace == namespace
	if name == "" || live.GetUID() == "" || !inside || s.scope.kind.key.namespaced != (namespace != "") {
		return nil
	}
	told := &reduced{}
	told.Name, told.Namespace, told.UID, told.ResourceVersion = name, namespace, live.GetUID(), live.GetResourceVersion()
	told.record = s.store.reduce(ctx, live)
	return told
}
