// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"sync"
	"time"
)

// freshness is for how long objects may be created after the last confirmation that the owner is as
// in the request, and that it is for this process to act.
const freshness = 5 * time.Second

// ownerConfirmation keeps a call from creating objects on behalf of an owner that another
// process reconciles by now, or that is gone. It is safe for concurrent use.
type ownerConfirmation struct {
	confirm func(context.Context) error // nil: every creation is allowed
	now     func() time.Time

	lock sync.Mutex
	last time.Time // when the owner was last confirmed
	err  error
}

// confirmedAt notes that a write of the owner succeeded that started at that time.
func (f *ownerConfirmation) confirmedAt(at time.Time) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if at.After(f.last) {
		f.last = at
	}
}

// confirmOwner returns an error if no object may be created. It asks if the last confirmation is
// too old. A refusal is final for the rest of the call.
func (f *ownerConfirmation) confirmOwner(ctx context.Context) error {
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

// failure returns why nothing may be created any more; nil if nothing was refused.
func (f *ownerConfirmation) failure() error {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.err
}
