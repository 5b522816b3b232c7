// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

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

// tell sends the event as a client with the selector sees it.
func (f *fakeStream) tell(event fakeEvent) {
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
		go func() { // whoever closes may hold the lock
			f.server.mu.Lock()
			defer f.server.mu.Unlock()
			f.server.streams = slices.DeleteFunc(f.server.streams, func(other *fakeStream) bool { return other == f })
		}()
	})
}
