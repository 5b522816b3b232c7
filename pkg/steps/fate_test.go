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

// errDead is what a process would see of the world after its death: nothing.
var errDead = errors.New("the process is dead")

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

func (c *cloud) enter(call string) (leave func()) {
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

// fate is what happens to a process at one of its requests, to the API server or to the cloud.
type fate struct {
	// at is the request, counted from 1; 0 means none.
	at int
	// after lets the request happen; only its answer is lost.
	after bool
	// dies ends the process there; meanwhile is called before.
	dies      bool
	meanwhile func()

	mu    sync.Mutex
	names []string
	dead  bool
}

// request counts a request, and makes it unless the process is dead.
func (f *fate) request(name string, do func() error) error {
	f.mu.Lock()
	if f.dead {
		f.mu.Unlock()
		return errDead
	}
	f.names = append(f.names, name)
	mine := len(f.names) == f.at
	f.dead = mine && f.dies && !f.after
	dead := f.dead
	f.mu.Unlock()
	if dead {
		return errDead
	}
	if mine && f.meanwhile != nil {
		f.meanwhile()
	}
	err := do()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dead = f.dead || mine && f.dies
	if f.dead {
		return errDead
	}
	return err
}

func (f *fate) isDead() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dead
}

// wrap puts the fate between a client and the API server.
func (f *fate) wrap(next http.RoundTripper) http.RoundTripper {
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
