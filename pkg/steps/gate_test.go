// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/corbel-run/corbel/test/wire"
)

// errCrashed is the error of every request after the crash of a process.
var errCrashed = errors.New("the process has crashed")

// cloud is the system outside. Like many, it makes something once for each idempotency
// key, unless it is forgetful.
type cloud struct {
	forgetful bool

	mu      sync.Mutex
	byKey   map[string]string
	buckets map[string]bool // true if configured
	made    int
	calls   map[string]int
}

func newCloud() *cloud {
	return &cloud{byKey: map[string]string{}, buckets: map[string]bool{}, calls: map[string]int{}}
}

func (c *cloud) enter(call string) (unlock func()) {
	c.mu.Lock()
	c.calls[call]++
	return c.mu.Unlock
}

func (c *cloud) create(key string) string {
	defer c.enter("create")()
	if name, known := c.byKey[key]; known && !c.forgetful {
		return name
	}
	c.made++
	name := fmt.Sprintf("b-%d", c.made)
	c.byKey[key], c.buckets[name] = name, false
	return name
}

func (c *cloud) configure(name string) {
	defer c.enter("configure")()
	if _, ok := c.buckets[name]; ok {
		c.buckets[name] = true
	}
}

func (c *cloud) remove(name string) {
	defer c.enter("remove")()
	delete(c.buckets, name)
}

// gate is a disturbance of a process at one of its requests, to the API server or to the cloud.
type gate struct {
	// at is the request, counted from 1; 0 means none.
	at int
	// after lets the request happen; only its answer is lost.
	after bool
	// crashes ends the process there; meanwhile is called before.
	crashes   bool
	meanwhile func()

	mu      sync.Mutex
	names   []string
	crashed bool
}

// request counts a request, and makes it unless the process has crashed.
func (f *gate) request(name string, do func() error) error {
	f.mu.Lock()
	if f.crashed {
		f.mu.Unlock()
		return errCrashed
	}
	f.names = append(f.names, name)
	mine := len(f.names) == f.at
	f.crashed = mine && f.crashes && !f.after
	crashed := f.crashed
	f.mu.Unlock()
	if crashed {
		return errCrashed
	}
	if mine && f.meanwhile != nil {
		f.meanwhile()
	}
	err := do()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.crashed = f.crashed || mine && f.crashes
	if f.crashed {
		return errCrashed
	}
	return err
}

func (f *gate) hasCrashed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.crashed
}

// wrap puts the gate between a client and the API server.
func (f *gate) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (response *http.Response, err error) {
		failure := f.request(r.Method, func() error {
			response, err = next.RoundTrip(r)
			return nil
		})
		if failure != nil {
			if response != nil {
				_ = response.Body.Close()
			}
			return nil, failure
		}
		return response, err
	})
}
