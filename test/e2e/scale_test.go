// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/corbel-run/corbel/test/wire"
)

// requestCounter counts the requests of an operator by method and resource, but for
// watches, what informers list, events and leases.
type requestCounter struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *requestCounter) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if !isWatch(r) && !isInformer(r) && !isEvent(r) {
			c.mu.Lock()
			if c.counts == nil {
				c.counts = map[string]int{}
			}
			c.counts[r.Method+" "+resourceOf(r.URL.Path)]++
			c.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

// drain returns the counts since the last call.
func (c *requestCounter) drain() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	counted := c.counts
	c.counts = nil
	return counted
}

func total(counts map[string]int) int {
	sum := 0
	for n := range maps.Values(counts) {
		sum += n
	}
	return sum
}

// resourceOf returns the resource, and the subresource, that a path is about.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if i := slices.Index(parts, "namespaces"); i >= 0 && len(parts) > i+2 {
		resource := parts[i+2]
		if len(parts) > i+4 {
			resource += "/" + parts[i+4]
		}
		return resource
	}
	return fmt.Sprint(parts)
}
