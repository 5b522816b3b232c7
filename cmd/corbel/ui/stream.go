// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
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

// queue holds what a stream has not sent yet: of each thing only the latest event, so that a page that reads slowly
// costs no more memory than the components and dependents that there are.
type queue struct {
	mu      sync.Mutex
	latest  map[string]waiting
	numbers int // how many events were put
	wake    chan struct{}
}

// waiting is an event that is not sent yet, with its number.
type waiting struct {
	event
	number int
}

func newQueue() *queue { return &queue{latest: map[string]waiting{}, wake: make(chan struct{}, 1)} }

// Keys of events about the component that a page shows.
const (
	treeKey      = "tree" // its event says all of the dependents
	dependentKey = "dependent "
)

// put lets an event wait in place of the one before with its key, after all others.
func (q *queue) put(key string, e event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if key == treeKey {
		maps.DeleteFunc(q.latest, func(key string, _ waiting) bool { return strings.HasPrefix(key, dependentKey) })
	}
	q.numbers++
	q.latest[key] = waiting{e, q.numbers}
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take returns what waits, in the order in which it was put.
func (q *queue) take() []waiting {
	q.mu.Lock()
	defer q.mu.Unlock()
	events := slices.SortedFunc(maps.Values(q.latest), func(a, b waiting) int { return cmp.Compare(a.number, b.number) })
	q.latest = map[string]waiting{}
	return events
}

const (
	// maxStreams bounds how many pages are served at a time.
	//
	// Limit: how many pages of corbel ui may be open at a time.
	maxStreams = 64
	// between is the least time between two writes, so that a burst of changes is one write.
	between = 50 * time.Millisecond
	// alive is how often something is sent, so that a page that is gone, and has not closed its connection, is noticed, and that a page
	// knows how old its data is when the connection ends.
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
	defer s.fleet.subscribe(q, r.URL.Query().Get("known") != "")()
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
	if send([]byte(": open\n\n")) != nil {
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
			text = []byte("event: alive\ndata: {}\n\n")
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
