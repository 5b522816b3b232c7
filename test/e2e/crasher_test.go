// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/corbel-run/corbel/test/wire"
)

// crasher counts the requests of an operator and kills it at one of them:
// from then on no request leaves and no answer arrives.
type crasher struct {
	*wire.Gate
	jobs jobs
	// armed is set when the requests start to count: what a process does to start is not part of the scenario.
	armed atomic.Bool
}

// newCrasher kills the operator at a request, counted from 1; 0 means never. With after, only the answer is lost.
func newCrasher(at int, after bool) *crasher {
	c := &crasher{}
	c.Gate = &wire.Gate{At: at, After: after, Counts: func(r *http.Request) bool { return c.armed.Load() && !isBackground(r) }}
	return c
}

// wrap puts the crasher between the operator and the server.
func (c *crasher) wrap(next http.RoundTripper) http.RoundTripper { return c.Wrap(c.count(next)) }

// count only watches the requests of an operator that does not crash.
func (c *crasher) count(next http.RoundTripper) http.RoundTripper { return c.jobs.watch(next) }

func (c *crasher) arm() { c.armed.Store(true) }

// requests are the methods of the requests that were counted.
func (c *crasher) requests() []string {
	methods := c.Requests()
	for i, request := range methods {
		methods[i], _, _ = strings.Cut(request, " ")
	}
	return methods
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
	return r.Method == http.MethodGet && (strings.HasSuffix(r.URL.Path, "/widgets") || r.URL.Path == "/api/v1/secrets")
}

// isEvent reports whether a request is an event, which is sent in the background.
func isEvent(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/events") }
