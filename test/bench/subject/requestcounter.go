// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/corbel-run/corbel/test/wire"
)

// Traffic is what a subject has sent. Requests holds all but watches, events and
// leases, by verb and resource, such as "PATCH configmaps".
type Traffic struct {
	Requests map[string]int
	Watches  int
	Events   int
	Leases   int
}

// Total is the number of requests.
func (t Traffic) Total() int { return t.count(func(string) bool { return true }) }

// Writes is the number of requests that change something.
func (t Traffic) Writes() int {
	return t.count(func(verb string) bool { return slices.Contains([]string{"POST", "PUT", "PATCH", "DELETE"}, verb) })
}

// Add counts a request. It reports whether that is work, which ends with the answer: a watch and the
// renewal of a lease are not.
func (t *Traffic) Add(r *http.Request) bool {
	verb, resource := classify(r)
	switch {
	case verb == "WATCH":
		t.Watches++
		return false
	case resource == "leases":
		t.Leases++
		return false
	case resource == "events":
		t.Events++
	default:
		if t.Requests == nil {
			t.Requests = map[string]int{}
		}
		t.Requests[strings.TrimSpace(verb+" "+resource)]++
	}
	return true
}

func (t Traffic) count(counts func(verb string) bool) int {
	sum := 0
	for request, n := range t.Requests {
		if verb, _, _ := strings.Cut(request, " "); counts(verb) {
			sum += n
		}
	}
	return sum
}

// RequestCounter counts requests where they leave the process.
type RequestCounter struct {
	mu      sync.Mutex
	traffic Traffic
	open    int       // requests that are not answered yet; no watches
	last    time.Time // when the last one was answered
}

func newRequestCounter() *RequestCounter {
	return &RequestCounter{traffic: Traffic{Requests: map[string]int{}}}
}

// Wrap counts what goes through a transport.
func (c *RequestCounter) Wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if end := c.startRequest(r); end != nil {
			defer end()
		}
		return next.RoundTrip(r)
	})
}

// startRequest counts a request, and returns what is to be done at its end.
func (c *RequestCounter) startRequest(r *http.Request) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.traffic.Add(r) {
		return nil
	}
	c.open++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open--
		c.last = time.Now()
	}
}

// Quiet reports whether no request is open, and since when.
func (c *RequestCounter) Quiet() (since time.Time, quiet bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last, c.open == 0
}

func (c *RequestCounter) drain() Traffic {
	c.mu.Lock()
	defer c.mu.Unlock()
	counted := c.traffic
	c.traffic = Traffic{Requests: map[string]int{}}
	return counted
}

// classify returns the verb of a request, which is DISCOVERY if it asks what the
// server can do, and the resource, with the subresource if there is one.
func classify(r *http.Request) (verb, resource string) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		return "DISCOVERY", ""
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	resource = parts[0]
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	query := r.URL.Query()
	switch {
	case query.Get("watch") == "true" || query.Get("watch") == "1":
		return "WATCH", resource
	case r.Method == http.MethodGet && len(parts) == 1:
		return "LIST", resource
	case query.Has("dryRun"):
		return "DRYRUN", resource
	default:
		return r.Method, resource
	}
}
