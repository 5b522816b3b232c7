// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"net/http"
	"strings"
	"sync"
)

// errDead is what a process would see of the network after its death: nothing.
var errDead = errors.New("the process is dead")

// guillotine counts the requests of an operator and kills it at one of them:
// from then on no request leaves and no answer arrives.
type guillotine struct {
	// at is the request, counted from 1, at which the operator dies; 0 means never.
	at int
	// after lets the request reach the server; only its answer is lost.
	after bool
	// fallen is closed when the operator dies.
	fallen chan struct{}

	mu    sync.Mutex
	armed bool
	count int
	dead  bool
}

func newGuillotine(at int, after bool) *guillotine {
	return &guillotine{at: at, after: after, fallen: make(chan struct{})}
}

// wrap puts the guillotine between the operator and the server.
func (g *guillotine) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if isWatch(r) || isInformer(r) || isEvent(r) {
			if g.isDead() {
				return nil, errDead
			}
			return next.RoundTrip(r)
		}
		falls, dead := g.step()
		if dead || falls && !g.after {
			g.fall(falls)
			return nil, errDead
		}
		response, err := next.RoundTrip(r)
		if falls {
			if err == nil {
				_ = response.Body.Close()
			}
			g.fall(true)
		}
		if g.isDead() {
			return nil, errDead
		}
		return response, err
	})
}

func (g *guillotine) step() (falls, dead bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dead {
		return false, true
	}
	if !g.armed {
		return false, false
	}
	g.count++
	if g.count != g.at {
		return false, false
	}
	if !g.after {
		g.dead = true
	}
	return true, false
}

func (g *guillotine) fall(falls bool) {
	if !falls {
		return
	}
	g.mu.Lock()
	g.dead = true
	g.mu.Unlock()
	close(g.fallen)
}

func (g *guillotine) isDead() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.dead
}

// arm begins to count: what a process does to start is not part of the story.
func (g *guillotine) arm() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed = true
}

// requests is how many requests were counted.
func (g *guillotine) requests() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count
}

// isInformer tells whether a request is the manager's list of all Bundles.
func isInformer(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/bundles")
}

// isEvent tells whether a request is an event, which is sent in the background.
func isEvent(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/events") }

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
