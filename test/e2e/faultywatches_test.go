// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/wire"
)

// faultyWatches puts a fault between the watches of one operator and the server.
// Without a fault it does nothing.
type faultyWatches struct {
	fault *watchFault
	// before is the version of the server before the scenario.
	before string

	// effect is closed when the fault has an effect, done when it has ended.
	effect, done chan struct{}

	mu      sync.Mutex
	started time.Time
	ended   time.Time
	version string // at which watches start in the past
	streams map[*watchStream]bool
	// relist are the paths of watches that cannot continue where they were, down those of
	// watches that were broken and have not started again.
	relist, down map[string]bool
	// affected is set if an event or a request did not get through as it was.
	affected bool
	// up is set when the operator has started to work.
	up     bool
	flying int
	last   time.Time
}

func newFaultyWatches(fault *watchFault, before string) *faultyWatches {
	return &faultyWatches{
		fault: fault, before: before, effect: make(chan struct{}), done: make(chan struct{}), last: time.Now(),
		streams: map[*watchStream]bool{}, relist: map[string]bool{}, down: map[string]bool{},
	}
}

// version is the newest version of everything on the server.
func (f *fixture) version(t testing.TB) string {
	t.Helper()
	return read(t, func(ctx context.Context) (string, error) {
		list := &BundleList{}
		err := f.List(ctx, list, client.InNamespace(f.namespace))
		return list.ResourceVersion, err
	})
}

// start starts the fault. It returns when the fault is as far as it should be
// before the scenario goes on.
func (w *faultyWatches) start(t testing.TB, version string) {
	t.Helper()
	if w.fault == nil {
		return
	}
	w.mu.Lock()
	w.started, w.version = time.Now(), version
	if w.fault.longPast {
		w.version = w.before
	}
	if w.fault.breaks() {
		for s := range w.streams {
			w.affect()
			w.cut(s)
		}
	}
	w.mu.Unlock()
	eventually(t, "the fault to work", func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.up {
			return errors.New("the operator has not started to work")
		}
		if w.fault.isOld() && w.isDown(w.started) || time.Since(w.started) < w.fault.idle {
			return fmt.Errorf("watches that did not start in the past: %v", w.down)
		}
		return nil
	})
}

// awaitSync waits until the operator has listed the components.
func (o *operator) awaitSync(t testing.TB, watches *faultyWatches) {
	t.Helper()
	eventually(t, "the operator to list the components", func(ctx context.Context) error {
		watches.mu.Lock()
		defer watches.mu.Unlock()
		if !watches.up {
			return errors.New("the operator has not started to work")
		}
		return nil
	})
	if !o.cache.WaitForCacheSync(t.Context()) {
		t.Fatal("the operator does not list the components")
	}
}

// cut breaks a stream. It is called with the lock.
func (w *faultyWatches) cut(s *watchStream) {
	w.down[s.path] = true
	s.cut()
}

// isDown reports whether a watch has not started again although it had the time that it
// takes. It is called with the lock.
func (w *faultyWatches) isDown(since time.Time) bool {
	return len(w.down) > 0 && time.Since(since) < 2*time.Second
}

// endLater ends the fault when it has lasted as long as it should, counted from when
// it had an effect for the first time, or from the time that this may take.
func (w *faultyWatches) endLater(within time.Duration) {
	if w.fault == nil {
		return
	}
	go func() {
		select {
		case <-w.effect:
		case <-time.After(within):
		}
		time.AfterFunc(w.fault.lasts-w.fault.idle, w.end)
	}()
}

// endWithScenario reports whether the fault ends when the scenario has ended.
func (w *faultyWatches) endWithScenario() bool { return w.fault != nil && w.fault.ofComponents }

// affect notes that the fault has an effect. It is called with the lock.
func (w *faultyWatches) affect() {
	if !w.affected {
		w.affected = true
		close(w.effect)
	}
}

// end ends the fault.
func (w *faultyWatches) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended.IsZero() {
		return
	}
	w.ended = time.Now()
	close(w.done)
	for s := range w.streams {
		if s.lossy {
			w.cut(s)
		}
	}
}

// awaitEnd waits for the end of the fault, and until the operator has done what the
// truth makes it do.
func (w *faultyWatches) awaitEnd(t testing.TB) {
	t.Helper()
	if w.fault == nil {
		return
	}
	<-w.done
	eventually(t, "the operator to be quiet", func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.isDown(w.ended) || w.flying > 0 || time.Since(w.last) < 400*time.Millisecond {
			return errors.New("it is at work")
		}
		return nil
	})
}

// isOn reports whether the fault goes on. It is called with the lock.
func (w *faultyWatches) isOn() bool { return !w.started.IsZero() && w.ended.IsZero() }

// around puts the faults before whatever else is between the operator and the server.
func (w *faultyWatches) around(wrap func(http.RoundTripper) http.RoundTripper) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		if wrap != nil {
			next = wrap(next)
		}
		return w.wrap(next)
	}
}

// check expects that the fault has changed anything.
func (w *faultyWatches) check(t testing.TB) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault != nil && !w.affected {
		t.Error("all events arrived as if there were no fault")
	}
}

func (w *faultyWatches) wrap(next http.RoundTripper) http.RoundTripper {
	if w.fault == nil {
		return next
	}
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if isWatch(r) && collectionOf(r) == "widgets" {
			w.mu.Lock()
			w.up = true
			w.mu.Unlock()
		}
		if !w.fault.concerns(r) {
			defer w.count(r)()
			return next.RoundTrip(r)
		}
		r = inJSON(r)
		if answer, err := w.intercept(r); answer != nil || err != nil {
			return answer, err
		}
		w.mu.Lock()
		on, started := w.isOn(), w.started
		w.mu.Unlock()
		switch {
		case on && w.fault.isOld() && isInitial(r):
			return w.fromThePast(next, r)
		case on && w.fault.isOld():
			return next.RoundTrip(w.inThePast(r, "Exact"))
		}
		response, err := next.RoundTrip(r)
		if err != nil || response.StatusCode != http.StatusOK || !isWatch(r) {
			return response, err
		}
		return w.stream(r, response, nil, started), nil
	})
}

// count notes a request that is none of a watch.
func (w *faultyWatches) count(r *http.Request) (done func()) {
	if isBackground(r) {
		return func() {}
	}
	note := func(more int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.flying += more
		w.last = time.Now()
	}
	note(1)
	return func() { note(-1) }
}

// intercept answers a request that does not get through.
func (w *faultyWatches) intercept(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	on, goesOn := w.isOn(), isWatch(r) && !isInitial(r)
	relist := goesOn && w.relist[r.URL.Path]
	if isInitial(r) || !isWatch(r) {
		delete(w.relist, r.URL.Path)
	}
	if relist || on && w.fault.breaks() {
		w.affect()
	}
	w.mu.Unlock()
	switch {
	case relist, on && w.fault.isOld() && goesOn:
		return answerWith(r, expired), nil
	case !on:
		return nil, nil
	case w.fault.refuse:
		return nil, syscall.ECONNREFUSED
	case w.fault.tooLarge && isWatch(r):
		return answerWith(r, tooLarge), nil
	case w.fault.silent:
		select {
		case <-w.done:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return nil, nil
}

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
