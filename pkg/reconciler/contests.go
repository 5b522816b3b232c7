// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"sync"
	"time"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

const (
	// contestAfter is how many times in a row an object is corrected at once.
	contestAfter = 3
	// From then on the time between two corrections doubles from contestBase to contestLimit.
	contestBase  = 2 * time.Second
	contestLimit = 5 * time.Minute
	// contestQuiet is how long nobody must touch an object, beyond the time that we
	// have waited anyway, until its corrections are forgotten.
	contestQuiet = 5 * time.Minute
)

// contests remembers which objects were corrected, so that two who do not agree
// about an object do not write it as fast as they can forever. It is safe for
// concurrent use.
type contests struct {
	lock    sync.Mutex
	byOwner map[plan.OwnerRef]map[plan.Key]corrections
	swept   time.Time
}

// corrections are those of one object.
type corrections struct {
	count int
	until time.Time // not corrected again before
	last  plan.Drift
}

func (c corrections) isOver(now time.Time) bool { return now.Sub(c.until) > contestQuiet }

// corrected counts a correction of the object, and tells whether it is contested.
func (c *contests) corrected(owner plan.OwnerRef, key plan.Key, drift plan.Drift, now time.Time) (plan.Conflict, bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.sweep(now)
	if c.byOwner == nil {
		c.byOwner = map[plan.OwnerRef]map[plan.Key]corrections{}
	}
	if c.byOwner[owner] == nil {
		c.byOwner[owner] = map[plan.Key]corrections{}
	}
	known := c.byOwner[owner][key]
	if known.isOver(now) {
		known = corrections{}
	}
	if drift.Manager == "" && !drift.Missing && known.last.Manager != "" {
		// He who was seen before is more likely than nobody.
		drift.Manager, drift.At = known.last.Manager, known.last.At
	}
	known.count, known.last, known.until = known.count+1, drift, now
	if known.count >= contestAfter {
		known.until = now.Add(backoff.Delay(known.count-contestAfter, contestBase, contestLimit))
	}
	c.byOwner[owner][key] = known
	return plan.Conflict{Until: known.until, Last: known.last}, known.count >= contestAfter
}

// of returns the objects of the owner that are contested.
func (c *contests) of(owner plan.OwnerRef, now time.Time) map[plan.Key]plan.Conflict {
	c.lock.Lock()
	defer c.lock.Unlock()
	contested := map[plan.Key]plan.Conflict{}
	for key, known := range c.byOwner[owner] {
		if known.count >= contestAfter && now.Before(known.until) {
			contested[key] = plan.Conflict{Until: known.until, Last: known.last}
		}
	}
	return contested
}

// end forgets the corrections of an object: what is wanted of it has changed.
func (c *contests) end(owner plan.OwnerRef, key plan.Key) {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.byOwner[owner], key)
}

// forget forgets everything about an owner.
func (c *contests) forget(owner plan.OwnerRef) {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.byOwner, owner)
}

// sweep drops, now and then, what is over.
func (c *contests) sweep(now time.Time) {
	if now.Sub(c.swept) < contestQuiet {
		return
	}
	c.swept = now
	for owner, objects := range c.byOwner {
		for key, known := range objects {
			if known.isOver(now) {
				delete(objects, key)
			}
		}
		if len(objects) == 0 {
			delete(c.byOwner, owner)
		}
	}
}
