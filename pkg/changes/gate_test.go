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

var errCrashed = errors.New("the process has crashed")

// gate counts the requests of an operator, to the API server and to the receiver, and
// lets something happen at one of them. A nil gate lets everything reconcile.
type gate struct {
	at    int  // counted from 1; 0 means never
	after bool // when the answer is there, not before the request leaves
	// event happens at the request; an error kills the operator.
	event func() error

	mu      sync.Mutex
	count   int
	crashed bool
	writes  []string
}

// aim starts to count again.
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
	if g.hasCrashed() {
		return errCrashed
	}
	err := request()
	if here && after {
		g.happen(event)
	}
	if g.hasCrashed() {
		return errCrashed
	}
	return err
}

func (g *gate) happen(event func() error) {
	if err := event(); err != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.crashed = true
	}
}

func (g *gate) hasCrashed() bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.crashed
}

func (g *gate) requests() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count
}

func (g *gate) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (response *http.Response, err error) {
		if g == nil || !isOfAPass(r) {
			if g.hasCrashed() {
				return nil, errCrashed
			}
			return next.RoundTrip(r)
		}
		g.mu.Lock()
		if r.Method != http.MethodGet {
			g.writes = append(g.writes, r.Method+" "+r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
		}
		g.mu.Unlock()
		if crashed := g.request(func() error { response, err = next.RoundTrip(r); return nil }); crashed != nil {
			if response != nil {
				_ = response.Body.Close()
			}
			return nil, crashed
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
