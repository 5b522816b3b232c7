// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"sync"
	"time"
)

// freshness is how long objects may be created after it was last known that
// the owner is as the request says, and that it is for us to act.
const freshness = 5 * time.Second

// fence keeps a call from creating objects on behalf of an owner that somebody
// else looks after by now, or that is gone. It is safe for concurrent use.
type fence struct {
	confirm func(context.Context) error // nil: nobody can tell, so nothing is asked
	now     func() time.Time

	lock sync.Mutex
	last time.Time // when it was last known
	err  error
}

// known notes that something proved, at that time, that the owner is ours.
func (f *fence) known(at time.Time) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if at.After(f.last) {
		f.last = at
	}
}

// pass lets an object be created, after asking if it is long ago that somebody
// did. What was refused once stays refused for the rest of the call.
func (f *fence) pass(ctx context.Context) error {
	if f.confirm == nil {
		return nil
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.err != nil {
		return f.err
	}
	asked := f.now()
	if age := asked.Sub(f.last); age >= 0 && age < freshness {
		return nil
	}
	if err := f.confirm(ctx); err != nil {
		f.err = &SupersededError{Err: err}
		return f.err
	}
	f.last = asked
	return nil
}

// failure is why nothing may be created any more; nil if nothing was refused.
func (f *fence) failure() error {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.err
}
