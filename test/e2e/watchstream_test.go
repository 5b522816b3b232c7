// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watchStream is the answer to a watch on its way to the operator.
type watchStream struct {
	faults *faultyWatches
	path   string
	ctx    context.Context
	from   io.ReadCloser
	to     *io.PipeWriter
	broken chan struct{}
	once   sync.Once
	// initial is set while the initial events of the watch come.
	initial bool
	// earlier are the last events of the objects.
	earlier map[string][]byte
	// lossy is set if an event was lost. It is changed with the lock of the faults.
	lossy bool
}

// watchEvent is an event as the server sent it.
type watchEvent struct {
	raw  []byte
	at   time.Time
	Type string
	// Object is what counts of the object.
	Object metav1.PartialObjectMetadata
}

// stream lets the events of a watch through as the fault allows. A watch that was
// started before the fault is broken if the fault does that.
func (w *faultyWatches) stream(r *http.Request, response *http.Response, first [][]byte, started time.Time) *http.Response {
	reader, writer := io.Pipe()
	ctx, cancel := context.WithCancel(r.Context())
	s := &watchStream{
		faults: w, path: r.URL.Path, ctx: ctx, from: response.Body, to: writer, broken: make(chan struct{}),
		initial: isInitial(r) && first == nil, earlier: map[string][]byte{},
	}
	w.mu.Lock()
	w.streams[s] = true
	delete(w.down, s.path)
	w.last = time.Now() // its events make the operator work
	if w.isOn() && w.fault.breaks() && started.IsZero() {
		w.cut(s)
	}
	w.mu.Unlock()
	go func() {
		defer cancel()
		s.run(first)
		_ = s.from.Close()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.streams, s)
	}()
	answer := *response
	answer.Body = &pipedBody{reader, cancel}
	return &answer
}

// pipedBody is the body of an answer; to close it ends the stream.
type pipedBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

// Close ends the stream.
func (b *pipedBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

// cut breaks the stream.
func (s *watchStream) cut() { s.once.Do(func() { close(s.broken) }) }

// run forwards the events until the stream ends.
func (s *watchStream) run(first [][]byte) {
	defer func() { _ = s.to.Close() }()
	for _, event := range first {
		if !s.write(event) {
			return
		}
	}
	events := make(chan watchEvent, 100)
	go s.read(events)
	for {
		select {
		case <-s.broken:
			return
		case <-s.ctx.Done():
			return
		case event, more := <-events:
			if !more || !s.forward(event) {
				return
			}
		}
	}
}

// read cuts the answer of the server into events.
func (s *watchStream) read(events chan<- watchEvent) {
	defer close(events)
	decoder := json.NewDecoder(s.from)
	for {
		var raw json.RawMessage
		if decoder.Decode(&raw) != nil {
			return
		}
		event := watchEvent{raw: bytes.Clone(raw), at: time.Now()}
		_ = json.Unmarshal(raw, &event) // what is not understood is passed on
		select {
		case events <- event:
		case <-s.ctx.Done():
			return
		}
	}
}

// forward does with an event what the fault demands, and reports whether the stream goes on.
func (s *watchStream) forward(event watchEvent) bool {
	fault := s.faults.fault
	if !s.suffers(event) {
		return s.write(event.raw)
	}
	name := event.Object.Namespace + "/" + event.Object.Name
	switch {
	case fault.hold || fault.isOld():
		return s.wait(nil) && s.write(event.raw)
	case fault.delay > 0:
		timer := time.NewTimer(time.Until(event.at.Add(fault.delay)))
		defer timer.Stop()
		return s.wait(timer.C) && s.write(event.raw)
	case fault.drop && fault.bookmarks:
		return s.write(bookmark(event.Object.APIVersion, event.Object.Kind, event.Object.ResourceVersion, false))
	case fault.drop:
		return true
	case fault.expire:
		s.write(encode("ERROR", expired))
		return false
	case fault.replay:
		events := [][]byte{event.raw, event.raw, s.earlier[name]}
		s.earlier[name] = event.raw
		return !slices.ContainsFunc(events, func(raw []byte) bool { return raw != nil && !s.write(raw) })
	}
	return s.write(event.raw)
}

// suffers reports whether the fault is about the event.
func (s *watchStream) suffers(event watchEvent) bool {
	w := s.faults
	w.mu.Lock()
	defer w.mu.Unlock()
	initial := s.initial
	if event.Object.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
		s.initial = false
	}
	// A server that has sent half a list only breaks the watch; it does not go on.
	if !w.isOn() || initial && (w.fault.bookmarks || w.fault.expire) || event.Type == "BOOKMARK" && w.fault.expire {
		return false
	}
	w.affect()
	if w.fault.drop {
		s.lossy = true
		w.relist[s.path] = w.fault.bookmarks
	}
	return true
}

// wait waits for the end of the fault or for the timer, and reports whether the
// stream goes on.
func (s *watchStream) wait(timer <-chan time.Time) bool {
	select {
	case <-s.faults.done:
	case <-timer:
	case <-s.broken:
		return false
	case <-s.ctx.Done():
		return false
	}
	return true
}

func (s *watchStream) write(event []byte) bool {
	_, err := s.to.Write(append(bytes.Clone(event), '\n'))
	return err == nil
}

func encode(what string, object any) []byte {
	event, err := json.Marshal(map[string]any{"type": what, "object": object})
	if err != nil {
		panic(err)
	}
	return event
}

// bookmark returns the version of a bookmark; the one that ends the start of a watch says so.
func bookmark(apiVersion, kind, version string, initial bool) []byte {
	metadata := map[string]any{"resourceVersion": version, "creationTimestamp": nil}
	if initial {
		metadata["annotations"] = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return encode("BOOKMARK", map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata})
}

var (
	expired = &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "too old resource version",
	}
	tooLarge = &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: http.StatusGatewayTimeout, Reason: metav1.StatusReasonTimeout, Message: "Too large resource version",
		Details: &metav1.StatusDetails{RetryAfterSeconds: 1, Causes: []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}},
	}
)

// answerWith answers in the place of the server.
func answerWith(r *http.Request, status *metav1.Status) *http.Response {
	body, err := json.Marshal(status)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		Status: http.StatusText(int(status.Code)), StatusCode: int(status.Code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r,
	}
}
