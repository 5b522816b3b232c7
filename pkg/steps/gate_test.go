// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"fmt"
	"sync"
)

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
