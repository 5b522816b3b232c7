// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/corbel-run/corbel/test/wire"
)

var errDead = errors.New("the process is dead")

// gate counts the requests of an operator, to the API server and to the world, and
// lets something happen at one of them. A nil gate lets everything reconcile.
type gate struct {
	at    int  // counted from 1; 0 means never
	after bool // when the answer is there, not before the request leaves
	// event happens at the request; an error kills the operator.
	event func() error

	mu     sync.Mutex
	count  int
	dead   bool
	writes []string
}

// aim begins to count anew.
func (g *gate) aim(at int, after bool, event func() error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count, g.at, g.after, g.event = 0, at, after, event
}

// request makes a request.
func (g *gate) request(request func() error) error {
	if g == nil {
		return request()
	}
	g.mu.Lock()
	g.count++
	here, after, event := g.count == g.at, g.after, g.event
	g.mu.Unlock()
	if here && !after {
		g.happen(event)
	}
	if g.isDead() {
		return errDead
	}
	err := request()
	if here && after {
		g.happen(event)
	}
	if g.isDead() {
		return errDead
	}
	return err
}

func (g *gate) happen(event func() error) {
	if err := event(); err != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.dead = true
	}
}

func (g *gate) isDead() bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.dead
}

func (g *gate) requests() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count
}

func (g *gate) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (response *http.Response, err error) {
		if g == nil || !isOfAPass(r) {
			if g.isDead() {
				return nil, errDead
			}
			return next.RoundTrip(r)
		}
		g.mu.Lock()
		if r.Method != http.MethodGet {
			g.writes = append(g.writes, r.Method+" "+r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
		}
		g.mu.Unlock()
		if dead := g.request(func() error { response, err = next.RoundTrip(r); return nil }); dead != nil {
			if response != nil {
				_ = response.Body.Close()
			}
			return nil, dead
		}
		return response, err
	})
}

// written returns the writes since the last call.
func (g *gate) written() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	writes := slices.Clone(g.writes)
	g.writes = nil
	return writes
}

// isOfAPass reports whether a request is about one object: not a watch, a list or what a
// client asks about types.
func isOfAPass(r *http.Request) bool {
	return r.Method != http.MethodGet || strings.Contains(r.URL.Path, "/configmaps/")
}
