// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package componenttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/test/wire"
)

// record holds the requests of the operators of a case. It is safe for concurrent use.
type record struct {
	mu       sync.Mutex
	requests []request
	created  map[object]creation
}

// creation describes an object that was created.
type creation struct {
	times int
	// bookkeeping is set for a Secret that belongs to the component by an owner reference:
	// the inventory or the revisions of the component.
	bookkeeping bool
}

// object identifies an object that was created.
type object struct {
	schema.GroupVersionKind
	namespace, name string
}

// note keeps a request, and the object that it created, from the answer.
func (r *record) note(q request, response *http.Response) error {
	var made *metav1.PartialObjectMetadata
	if response != nil {
		q.code = response.StatusCode
		if q.code == http.StatusCreated && q.isWrite() && q.subresource == "" {
			var err error
			if made, err = readCreated(response); err != nil {
				return err
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if made != nil {
		q.name = made.Name
		if r.created == nil {
			r.created = map[object]creation{}
		}
		id := identify(made)
		r.created[id] = creation{times: r.created[id].times + 1, bookkeeping: id.Kind == "Secret" && len(made.OwnerReferences) > 0}
	}
	r.requests = append(r.requests, q)
	return nil
}

// readCreated reads the object of an answer, and leaves the answer as it was.
func readCreated(response *http.Response) (*metav1.PartialObjectMetadata, error) {
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	made := &metav1.PartialObjectMetadata{}
	if json.Unmarshal(body, made) != nil || made.Name == "" {
		return nil, nil
	}
	return made, nil
}

// all returns the requests from an index on.
func (r *record) all(from int) []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests[from:])
}

// writes returns the requests that write, from the first request that is asked for.
func (r *record) writes(from int) []request {
	return slices.DeleteFunc(r.all(from), func(q request) bool { return !q.isWrite() })
}

// creations returns the objects that were created.
func (r *record) creations() map[object]creation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.created)
}

// resources are the types that were written to.
func (r *record) resources() []schema.GroupVersionResource {
	var found []schema.GroupVersionResource
	for _, q := range r.writes(0) {
		if !slices.Contains(found, q.resource) {
			found = append(found, q.resource)
		}
	}
	return found
}

// errCrashed is the error of the network for a process after its crash.
var errCrashed = errors.New("the process has crashed")

// connection is the connection between one process and the server.
type connection struct {
	record *record
	// fatal is the write, counted from 1, at which the process crashes; 0 means never.
	fatal int
	// after lets the fatal write reach the server; only its answer is lost.
	after bool
	// faults lets requests fail; nil lets none.
	faults *faults

	mu      sync.Mutex
	armed   bool
	writes  int
	crashed bool
	at      request // the fatal one
}

// arm starts to count writes and to let requests fail: the start of the process is over.
func (c *connection) arm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed = true
}

// wrap puts the connection between the process and the server.
func (c *connection) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		q := parse(r)
		fatal, armed, crashed := c.step(q)
		if crashed {
			return nil, errCrashed
		}
		send := func() (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if noted := c.record.note(q, response); noted != nil {
				return nil, noted
			}
			return response, err
		}
		var response *http.Response
		var err error
		if armed && c.faults != nil && !q.isBackground() && c.faults.strikes(q) {
			response, err = c.faults.kind.fail(r, send)
		} else {
			response, err = send()
		}
		if fatal {
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

// step counts a request, and reports whether it is the fatal one and is sent, and whether the
// process has crashed before it is.
func (c *connection) step(q request) (fatal, armed, crashed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.crashed || !c.armed || !q.isWrite() {
		return false, c.armed, c.crashed
	}
	c.writes++
	if c.writes != c.fatal {
		return false, true, false
	}
	c.at, c.crashed = q, !c.after
	return true, true, c.crashed
}

func (c *connection) crash() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crashed = true
}

func (c *connection) hasCrashed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.crashed
}

// fatalWrite returns the request of the crash; it is empty if there was none.
func (c *connection) fatalWrite() request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// count returns the number of writes.
func (c *connection) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}
