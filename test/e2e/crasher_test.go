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

// errCrashed is what a process sees of the network after a crash: nothing.
var errCrashed = errors.New("the process has crashed")

// crasher counts the requests of an operator and kills it at one of them:
// from then on no request leaves and no answer arrives.
type crasher struct {
	// at is the request, counted from 1, at which the operator crashes; 0 means never.
	at int
	// after lets the request reach the server; only its answer is lost.
	after bool

	jobs jobs

	mu      sync.Mutex
	armed   bool
	methods []string
	crashed bool
}

func newCrasher(at int, after bool) *crasher { return &crasher{at: at, after: after} }

// wrap puts the crasher between the operator and the server.
func (c *crasher) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if isBackground(r) {
			if c.hasCrashed() {
				return nil, errCrashed
			}
			return next.RoundTrip(r)
		}
		crashes, crashed := c.step(r.Method)
		if crashed || crashes && !c.after {
			return nil, errCrashed
		}
		response, err := next.RoundTrip(r)
		c.jobs.note(r, response)
		if crashes {
			c.crash()
		}
		if c.hasCrashed() {
			if err == nil {
				_ = response.Body.Close()
			}
			return nil, errCrashed
		}
		return response, err
	})
}

// count only watches the requests of an operator that does not crash.
func (c *crasher) count(next http.RoundTripper) http.RoundTripper { return c.jobs.watch(next) }

func (c *crasher) step(method string) (crashes, crashed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.crashed {
		return false, true
	}
	if !c.armed {
		return false, false
	}
	c.methods = append(c.methods, method)
	if len(c.methods) != c.at {
		return false, false
	}
	c.crashed = !c.after
	return true, c.crashed
}

func (c *crasher) crash() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crashed = true
}

func (c *crasher) hasCrashed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.crashed
}

// arm starts to count: what a process does to start is not part of the scenario.
func (c *crasher) arm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed = true
}

// requests are the methods of the requests that were counted.
func (c *crasher) requests() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.methods)
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
