// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// ErrCrashed is the answer to each request of a process that has crashed.
var ErrCrashed = errors.New("the process has crashed")

// Gate counts the requests of a process, and lets something happen at one of them. After a crash no
// request leaves, and no answer arrives. A nil gate lets everything through.
type Gate struct {
	// At is the request at which something happens, counted from 1; 0 means none.
	At int
	// After lets the request take effect before.
	After bool
	// Happens is what happens; nil is a crash. An error takes the place of the answer, and ErrCrashed ends the process.
	Happens func() error
	// Counts reports whether a request to the API server is counted; nil counts all.
	Counts func(*http.Request) bool
	// Slow makes each request take a while, at random, before it takes effect and after: two processes in a bubble of
	// synctest overlap.
	Slow bool

	mu       sync.Mutex
	requests []string
	crashed  bool
}

// Aim starts to count again, for something else.
func (g *Gate) Aim(at int, after bool, happens func() error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.At, g.After, g.Happens, g.requests = at, after, happens, nil
}

// Do lets a request through, and counts it.
func (g *Gate) Do(request string, send func() error) error {
	if g == nil {
		return send()
	}
	g.mu.Lock()
	if g.crashed {
		g.mu.Unlock()
		return ErrCrashed
	}
	g.requests = append(g.requests, request)
	here, after, happens := len(g.requests) == g.At, g.After, g.Happens
	g.mu.Unlock()
	if here && !after {
		if err := g.happen(happens); err != nil {
			return err
		}
	}
	err := g.send(send)
	if here && after {
		if err := g.happen(happens); err != nil {
			return err
		}
	}
	if g.HasCrashed() {
		return ErrCrashed
	}
	return err
}

// send sends a request, in its time.
func (g *Gate) send(send func() error) error {
	if !g.Slow {
		return send()
	}
	time.Sleep(rand.N(time.Millisecond))
	err := send()
	time.Sleep(rand.N(time.Millisecond))
	return err
}

func (g *Gate) happen(what func() error) error {
	err := ErrCrashed
	if what != nil {
		err = what()
	}
	if errors.Is(err, ErrCrashed) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.crashed = true
	}
	return err
}

// HasCrashed reports whether the process has crashed.
func (g *Gate) HasCrashed() bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.crashed
}

// Requests returns the requests that were counted; those to the API server are method and path.
func (g *Gate) Requests() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.requests)
}

// Wrap puts the gate between a client and the API server.
func (g *Gate) Wrap(next http.RoundTripper) http.RoundTripper {
	return Through(next, func(r *http.Request) (response *http.Response, err error) {
		send := func() (err error) {
			response, err = next.RoundTrip(r)
			return err
		}
		switch {
		case g == nil || g.Counts == nil || g.Counts(r):
			err = g.Do(r.Method+" "+r.URL.Path, send)
		case g.HasCrashed():
			err = ErrCrashed
		default:
			if err = send(); g.HasCrashed() {
				err = ErrCrashed
			}
		}
		if err != nil && response != nil {
			_ = response.Body.Close()
			response = nil
		}
		return response, err
	})
}
