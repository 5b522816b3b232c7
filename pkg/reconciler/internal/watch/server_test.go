// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/corbel-run/corbel/internal/cluster"
)

// server is a server with one type; its events can be held back.
type server struct {
	mu      sync.Mutex
	version int
	objects map[objectName]*unstructured.Unstructured
	streams []*fakeStream
	// history are all events, for watches that start at a version.
	history []fakeEvent
	// compacted is the version up to which the history is not known any more.
	compacted int
	// refuse, if set, answers requests with an error; what is "list", "watch"
	// (with a list as its beginning) or "rewatch".
	refuse func(what, namespace string) error
	// held: events are held back until release.
	held bool
	// deaf: the server does not know how to start a watch with a list.
	deaf bool
	// lag is how late a watch that was closed notices it.
	lag time.Duration
	// after, if set, is called with every watch that starts with a list.
	after    func(*fakeStream)
	requests []string
}

type fakeEvent struct {
	what   apiwatch.EventType
	object *unstructured.Unstructured
	// old is the object before, nil if there was none.
	old *unstructured.Unstructured
	// code is that of an error, if it is one.
	code int32
}

func newServer() *server {
	return &server{objects: map[objectName]*unstructured.Unstructured{}, version: 100}
}

const label = "corbel.example.com/owner-id"

var pods = cluster.Resource{
	GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Kind: "Pod", Namespaced: true,
	Verbs: []string{"get", "list", "watch"},
}

var inShop = Place{Resource: pods, Namespace: "shop"}

// object returns an object of an owner; an empty one has no label.
func object(namespace, name, uid, owner, content string) *unstructured.Unstructured {
	live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": content}}
	live.SetNamespace(namespace)
	live.SetName(name)
	live.SetUID(types.UID(uid))
	if owner != "" {
		live.SetLabels(map[string]string{label: owner})
	}
	return live
}

// put stores an object and sends the event to the watches.
func (s *server) put(live *unstructured.Unstructured) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store(live)
}

func (s *server) store(live *unstructured.Unstructured) *unstructured.Unstructured {
	s.version++
	live = live.DeepCopy()
	live.SetResourceVersion(strconv.Itoa(s.version))
	at := objectName{live.GetNamespace(), live.GetName()}
	old := s.objects[at]
	s.objects[at] = live
	s.emit(fakeEvent{what: apiwatch.Modified, object: live, old: old})
	return live
}

// change changes an object that is there.
func (s *server) change(namespace, name string, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := s.objects[objectName{namespace, name}].DeepCopy()
	change(live)
	return s.store(live)
}

// remove removes an object and returns it as it was.
func (s *server) remove(namespace, name string) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := objectName{namespace, name}
	old := s.objects[at]
	delete(s.objects, at)
	s.version++
	last := old.DeepCopy()
	last.SetResourceVersion(strconv.Itoa(s.version))
	s.emit(fakeEvent{what: apiwatch.Deleted, object: last, old: old})
	return old
}

func (s *server) emit(event fakeEvent) {
	s.history = append(s.history, event)
	for _, stream := range s.streams {
		stream.publish(event)
	}
}

// release sends what was held back.
func (s *server) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = false
	for _, stream := range s.streams {
		stream.flush()
	}
}

// deliver sends the first event that was held back, or one that was sent before.
func (s *server) deliver(again int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stream := range s.streams {
		switch {
		case again >= 0 && again < len(stream.sent):
			stream.events <- stream.sent[again]
		case again < 0 && len(stream.pending) > 0:
			stream.send(stream.pending[0])
			stream.pending = stream.pending[1:]
		}
	}
}

// hold holds events back.
func (s *server) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = true
}

// cut ends all watches.
func (s *server) cut() {
	s.mu.Lock()
	streams := slices.Clone(s.streams)
	s.mu.Unlock()
	for _, stream := range streams {
		stream.Close()
	}
}

// set changes how the server behaves.
func (s *server) set(change func(*server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// asked returns and removes the requests.
func (s *server) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := s.requests
	s.requests = nil
	return requests
}

func (s *server) ask(what, namespace string) error {
	request := what
	if namespace != "" {
		request += " " + namespace
	}
	s.requests = append(s.requests, request)
	if s.refuse != nil {
		return s.refuse(what, namespace)
	}
	return nil
}

func (s *server) List(ctx context.Context, _ cluster.Resource, namespace string, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ask("list", namespace); err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "PodList"}}
	list.SetResourceVersion(strconv.Itoa(s.version))
	for _, live := range s.selected(namespace) {
		list.Items = append(list.Items, *live.DeepCopy())
	}
	return list, nil
}

func (s *server) selected(namespace string) (objects []*unstructured.Unstructured) {
	names := slices.SortedFunc(maps.Keys(s.objects), func(a, b objectName) int {
		return slices.Compare([]string{a.namespace, a.name}, []string{b.namespace, b.name})
	})
	for _, at := range names {
		if labelled(s.objects[at]) && (namespace == "" || namespace == at.namespace) {
			objects = append(objects, s.objects[at])
		}
	}
	return objects
}

func labelled(live *unstructured.Unstructured) bool {
	return live != nil && live.GetLabels()[label] != ""
}

func (s *server) Watch(ctx context.Context, _ cluster.Resource, namespace string, options metav1.ListOptions) (apiwatch.Decoder, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what := "rewatch"
	if options.SendInitialEvents != nil {
		what = "watch"
	}
	if err := s.ask(what, namespace); err != nil {
		return nil, err
	}
	if options.LabelSelector != label {
		return nil, fmt.Errorf("the selector is %q", options.LabelSelector)
	}
	stream := &fakeStream{server: s, namespace: namespace, events: make(chan fakeEvent, 100_000), done: make(chan struct{})}
	if what == "watch" {
		for _, live := range s.selected(namespace) {
			stream.events <- fakeEvent{what: apiwatch.Added, object: live}
		}
		if !s.deaf {
			stream.events <- fakeEvent{what: apiwatch.Bookmark, object: s.bookmark()}
		}
		if s.after != nil {
			s.after(stream)
		}
	} else {
		since, _ := strconv.Atoi(options.ResourceVersion)
		if since < s.compacted {
			return nil, apierrors.NewResourceExpired("too old resource version")
		}
		for _, event := range s.history {
			if version, _ := strconv.Atoi(event.object.GetResourceVersion()); version > since {
				stream.publish(event)
			}
		}
	}
	s.streams = append(s.streams, stream)
	context.AfterFunc(ctx, stream.Close)
	return stream, nil
}

func (s *server) bookmark() *unstructured.Unstructured {
	event := object("", "", "", "", "")
	event.SetResourceVersion(strconv.Itoa(s.version))
	event.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return event
}

// fakeStream is a watch.
type fakeStream struct {
	server    *server
	namespace string
	events    chan fakeEvent
	pending   []fakeEvent
	sent      []fakeEvent
	once      sync.Once
	done      chan struct{}
}

// publish sends the event as a client with the selector sees it.
func (f *fakeStream) publish(event fakeEvent) {
	if f.namespace != "" && event.object.GetNamespace() != f.namespace {
		return
	}
	before, after := labelled(event.old), labelled(event.object) && event.what != apiwatch.Deleted
	switch {
	case after && !before:
		event.what = apiwatch.Added
	case after:
		event.what = apiwatch.Modified
	case before:
		gone := event.old.DeepCopy() // as the server sends it: as it was, with the new version
		gone.SetResourceVersion(event.object.GetResourceVersion())
		event = fakeEvent{what: apiwatch.Deleted, object: gone}
	default:
		return
	}
	if f.pending = append(f.pending, event); !f.server.held {
		f.flush()
	}
}

func (f *fakeStream) flush() {
	for _, event := range f.pending {
		f.send(event)
	}
	f.pending = nil
}

func (f *fakeStream) send(event fakeEvent) {
	f.sent = append(f.sent, event)
	f.events <- event
}

// Decode returns the next event.
func (f *fakeStream) Decode() (apiwatch.EventType, runtime.Object, error) {
	select {
	case <-f.done:
		time.Sleep(f.server.lag)
		return "", nil, io.EOF
	case event := <-f.events:
		if event.code != 0 {
			reason := map[int32]metav1.StatusReason{http.StatusGone: metav1.StatusReasonExpired, http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests}
			return apiwatch.Error, &metav1.Status{Status: metav1.StatusFailure, Code: event.code, Reason: reason[event.code]}, nil
		}
		return event.what, event.object.DeepCopy(), nil
	}
}

// Close ends the watch.
func (f *fakeStream) Close() {
	f.once.Do(func() {
		close(f.done)
		go func() { // the caller may hold the lock
			f.server.mu.Lock()
			defer f.server.mu.Unlock()
			f.server.streams = slices.DeleteFunc(f.server.streams, func(other *fakeStream) bool { return other == f })
		}()
	})
}
