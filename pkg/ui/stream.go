// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// event is one event of a stream.
type event struct {
	name string
	data any
}

// change is the data of an event about one thing.
type change struct {
	Op   string `json:"op"` // set or gone
	Item any    `json:"item"`
}

// connection is the data of the event that says whether the API server answers.
type connection struct {
	OK      bool   `json:"ok"`
	Message string `json:"message"`
}

// queue holds what a stream has not sent yet: of each thing only the latest event, so that a page that reads slowly
// costs no more memory than the components and dependents that there are.
type queue struct {
	mu     sync.Mutex
	keys   []string
	latest map[string]event
	wake   chan struct{}
}

func newQueue() *queue { return &queue{latest: map[string]event{}, wake: make(chan struct{}, 1)} }

func (q *queue) put(key string, e event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, waits := q.latest[key]; !waits {
		q.keys = append(q.keys, key)
	}
	q.latest[key] = e
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take returns what was put, in the order in which each thing was first put.
func (q *queue) take() []event {
	q.mu.Lock()
	defer q.mu.Unlock()
	events := make([]event, len(q.keys))
	for i, key := range q.keys {
		events[i] = q.latest[key]
	}
	q.keys, q.latest = nil, map[string]event{}
	return events
}

const (
	// maxStreams bounds how many pages are served at a time.
	//
	// Limit: how many pages of corbel ui may be open at a time.
	maxStreams = 64
	// between is the least time between two writes, so that a burst of changes is one write.
	between = 50 * time.Millisecond
	// alive is how often something is sent, so that a page that has gone away without a word is noticed.
	alive = 15 * time.Second
	// writeLimit is how long a page may take to read what is sent.
	writeLimit = 10 * time.Second
)

// stream sends what changes, until the page is closed.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		fail(w, refused{http.StatusServiceUnavailable, fmt.Sprintf("%d pages are open, and no more are served", maxStreams)})
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	q := newQueue()
	s.fleet.acquire()
	defer s.fleet.release()
	defer s.fleet.subscribe(q)()
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	if a := addressIn(r); a.name != "" {
		running.Go(func() { s.followTree(ctx, a, q) })
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not wait for more
	out := http.NewResponseController(w)
	send := func(text []byte) error {
		_ = out.SetWriteDeadline(time.Now().Add(writeLimit)) // not each writer has one
		if _, err := w.Write(text); err != nil {
			return err
		}
		return out.Flush()
	}
	if send([]byte("retry: 1000\n\n")) != nil {
		return
	}
	idle := time.NewTicker(alive)
	defer idle.Stop()
	for {
		var text []byte
		select {
		case <-ctx.Done():
			return
		case <-s.closed:
			return
		case <-idle.C:
			text = []byte(": alive\n\n")
		case <-q.wake:
			for _, e := range q.take() {
				data, err := json.Marshal(e.data)
				if err == nil {
					text = fmt.Appendf(text, "event: %s\ndata: %s\n\n", e.name, data)
				}
			}
		}
		if len(text) > 0 && send(text) != nil {
			return
		}
		pause(ctx, between)
	}
}
