// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/corbel-run/corbel/test/wire"
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

	jobs jobs

	mu      sync.Mutex
	armed   bool
	methods []string
	dead    bool
}

func newGuillotine(at int, after bool) *guillotine { return &guillotine{at: at, after: after} }

// wrap puts the guillotine between the operator and the server.
func (g *guillotine) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if isBackground(r) {
			if g.isDead() {
				return nil, errDead
			}
			return next.RoundTrip(r)
		}
		falls, dead := g.step(r.Method)
		if dead || falls && !g.after {
			return nil, errDead
		}
		response, err := next.RoundTrip(r)
		g.jobs.note(r, response)
		if falls {
			g.fall()
		}
		if g.isDead() {
			if err == nil {
				_ = response.Body.Close()
			}
			return nil, errDead
		}
		return response, err
	})
}

// count only watches the requests of an operator that does not die.
func (g *guillotine) count(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		g.jobs.note(r, response)
		return response, err
	})
}

func (g *guillotine) step(method string) (falls, dead bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dead {
		return false, true
	}
	if !g.armed {
		return false, false
	}
	g.methods = append(g.methods, method)
	if len(g.methods) != g.at {
		return false, false
	}
	g.dead = !g.after
	return true, g.dead
}

func (g *guillotine) fall() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dead = true
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

// requests are the methods of the requests that were counted.
func (g *guillotine) requests() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.methods)
}

// isBackground reports whether a request is not sent by a reconcile: watches, what informers and
// watches list, events, and what a client asks about the types of the server.
func isBackground(r *http.Request) bool {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	discovery := len(parts) <= 2 || parts[0] == "apis" && len(parts) == 3 || parts[0] == "openapi"
	return discovery || isWatch(r) || isInformer(r) || isOfDependents(r) || isEvent(r)
}

// isInformer reports whether a request is the manager's list of all Bundles, or the
// look for Secrets without a component, both of the start.
func isInformer(r *http.Request) bool {
	return r.Method == http.MethodGet && (strings.HasSuffix(r.URL.Path, "/bundles") || r.URL.Path == "/api/v1/secrets")
}

// isEvent reports whether a request is an event, which is sent in the background.
func isEvent(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/events") }
