// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"io"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// reduced is the form in which an object passes through a reflector.
type reduced struct {
	metav1.PartialObjectMetadata
	record *record // nil for an object that left
}

// DeepCopyObject implements runtime.Object.
func (r *reduced) DeepCopyObject() runtime.Object {
	metadata := r.PartialObjectMetadata.DeepCopy()
	return &reduced{*metadata, r.record}
}

func (r *reduced) name() objectName { return objectName{r.Namespace, r.Name} }

// firstEvents is how long the events that a watch begins with may pause. A server
// that does not know of them sends nothing that marks their end.
const firstEvents = time.Minute

// stream reduces the events of a watch, and notices when it ends.
type stream struct {
	source *source
	ctx    context.Context // that of the watch, for the log
	events apiwatch.Decoder

	mu sync.Mutex
	// patience runs while the events come that a watch begins with; else it is nil.
	patience *time.Timer
	ended    bool
}

// first says that the watch begins with a list.
func (s *stream) first() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.patience = time.AfterFunc(firstEvents, s.giveUp)
}

// Decode returns the next event.
func (s *stream) Decode() (apiwatch.EventType, runtime.Object, error) {
	for {
		what, object, err := s.events.Decode()
		if err != nil {
			s.end()
			return "", nil, err
		}
		first := s.wait()
		switch object := object.(type) {
		case *unstructured.Unstructured:
			if told := s.reduce(what, object); told != nil {
				return what, told, nil
			}
		case *metav1.Status:
			if err := apierrors.FromObject(object); first && !isAboutVersion(err) {
				// A reflector would pause in a way that nothing can end.
				_ = s.source.failed(err)
				s.end()
				return "", nil, io.EOF
			}
			return what, object, nil
		}
	}
}

// reduce returns what the reflector is told; nil is nothing.
func (s *stream) reduce(what apiwatch.EventType, live *unstructured.Unstructured) runtime.Object {
	if what == apiwatch.Bookmark {
		mark := &reduced{}
		mark.ResourceVersion, mark.Annotations = live.GetResourceVersion(), live.GetAnnotations()
		if mark.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
			s.complete()
		}
		return mark
	}
	if told := s.source.reduce(s.ctx, live); told != nil {
		return told
	}
	return nil // and not a nil of another type
}

// wait gives the server time for the next of the events that a watch begins
// with, and tells whether these still come.
func (s *stream) wait() (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.patience == nil {
		return false
	}
	s.patience.Reset(firstEvents)
	return true
}

// complete says that the events are there that the watch began with.
func (s *stream) complete() (before bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.patience == nil {
		return false
	}
	s.patience.Stop()
	s.patience = nil
	return true
}

// giveUp ends a watch that does not begin as it should. The next attempt is a list.
func (s *stream) giveUp() {
	if s.complete() {
		s.source.mu.Lock()
		s.source.plain = true
		s.source.mu.Unlock()
		s.Close()
	}
}

// Close ends the watch.
func (s *stream) Close() {
	s.events.Close()
	s.end()
}

// end notices the end once: whoever is late must not speak of the next watch.
func (s *stream) end() {
	s.complete()
	s.mu.Lock()
	before := s.ended
	s.ended = true
	s.mu.Unlock()
	if !before {
		s.source.store.disconnected(s.source.scope)
	}
}
