// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	defaultTimeout = 30 * time.Second
	defaultSettle  = 10 * time.Second
)

// Options say what is known about the API. The zero value is for one whose Create can
// be repeated with the same token and that shows at once what was created.
type Options struct {
	// Timeout is how long each call of the Client may take; for a Create it counts
	// from when its intent was about to be recorded. Default is 30 s.
	Timeout time.Duration
	// Settle is how long after its Timeout a Create may still take effect and
	// become visible, plus what the clocks of two replicas of the operator may differ.
	// As long as that is possible, it is not believed that there is no resource. Default
	// is 10 s. A time on record that is later than now by more than that cannot be; it
	// is replaced by the present.
	Settle time.Duration
	// NotIdempotent is for APIs that would create another resource for the same
	// token. Then an attempt whose outcome is unknown is followed by another one
	// only after Timeout and Settle, if the resource has not been observed by then.
	NotIdempotent bool
	// EventuallyConsistent is for APIs that may not show at once what they have
	// said to be created.
	EventuallyConsistent bool
	// Clock is the time for the Record. Default is time.Now.
	Clock func() time.Time
}

func (o Options) complete() Options {
	o.Timeout = cmp.Or(max(o.Timeout, 0), defaultTimeout)
	o.Settle = cmp.Or(max(o.Settle, 0), defaultSettle)
	clock := o.Clock
	if clock == nil {
		clock = time.Now
	}
	// Without the monotonic reading, which two times would be compared by: it may stand
	// still with the machine, and no other process knows it.
	o.Clock = func() time.Time { return clock().Round(0) }
	return o
}

// correct makes the record of a Create that is still to come begin now: what wrote it had
// a clock that was ahead, and to wait for that time might be to wait for ever.
func (o Options) correct(record *Record) {
	if now := o.Clock(); record.Since != nil && record.Since.After(now.Add(o.Settle)) {
		record.Since = &metav1.MicroTime{Time: now}
	}
}

// unsettled is how long the last Create of the record may still take effect.
func (o Options) unsettled(record *Record) time.Duration {
	if record.Since == nil {
		return 0
	}
	passed := o.Clock().Sub(record.Since.Time)
	// A time that is a little in the future is that of another clock.
	return min(max(o.Timeout+o.Settle-passed, 0), o.Timeout+o.Settle)
}
