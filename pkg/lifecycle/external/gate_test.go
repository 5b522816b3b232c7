// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/corbel-run/corbel/test/wire"
)

var errCrashed = errors.New("the process has crashed")

// gate counts the requests of one process, to the API server and to the bank, and does
// something at one of them.
type gate struct {
	at     int // counted from 1; 0 means never
	before func() error
	after  func() error

	mu       sync.Mutex
	requests []string
	crashed  bool
}

// die is what a gate does to kill the process.
func (g *gate) die() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.crashed = true
	return errCrashed
}

func (g *gate) hasCrashed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.crashed
}

func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.requests)
}

// pass lets one request through.
func (g *gate) pass(request string, serve func() error) error {
	g.mu.Lock()
	g.requests = append(g.requests, request)
	here, crashed := len(g.requests) == g.at, g.crashed
	g.mu.Unlock()
	if crashed {
		return errCrashed
	}
	if here && g.before != nil {
		if err := g.before(); err != nil {
			return err
		}
	}
	if err := serve(); err != nil {
		return err
	}
	if here && g.after != nil {
		return g.after()
	}
	return nil
}

// transport is the way to the API server.
func (g *gate) transport(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (response *http.Response, err error) {
		served := false
		err = g.pass(r.Method+" "+r.URL.Path, func() (err error) {
			response, err = next.RoundTrip(r)
			served = err == nil
			return err
		})
		if err != nil && served {
			_ = response.Body.Close()
			response = nil
		}
		return response, err
	})
}

// wire is the way to the bank: no request leaves with a context that is over.
func (g *gate) wire(ctx context.Context, request string, serve func()) error {
	return g.pass(request, func() error { return direct(ctx, request, serve) })
}
