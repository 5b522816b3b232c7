// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

// unsettledError ends a pass that has to be followed by another one soon.
type unsettledError struct {
	// message says what is waited for; it is not used if there is an err.
	message string
	// err is why more than waiting is needed; nil if there is nothing wrong.
	err error
	// failed: one of those that are waited for says that it failed.
	failed bool
	// net is when to come again if nothing happens.
	net time.Duration
}

func (e *unsettledError) Error() string {
	if e.err != nil {
		return e.err.Error()
	}
	return e.message
}

func (e *unsettledError) Unwrap() error { return e.err }

// blockedError ends a pass over a component whose deletion is blocked.
type blockedError struct {
	message string
	net     time.Duration
}

func (e *blockedError) Error() string { return e.message }

// minNet is the shortest delay between two passes that wait.
const minNet = 50 * time.Millisecond

// net is when a component comes again that waits: later and later as long as
// nothing moves, but no later than an object settles by itself.
func (h *handler[T]) net(key client.ObjectKey, waits []reconciler.Wait) time.Duration {
	net := h.activity.Next(key)
	now := h.now()
	if len(waits) > 0 && !slices.ContainsFunc(waits, func(wait reconciler.Wait) bool { return wait.Reason != reconciler.WaitConflict }) {
		net = defaultRequeueInterval // nothing moves before the time of the next correction
	}
	if next := nextOf(waits); !next.IsZero() {
		net = min(net, max(next.Sub(now), minNet))
	}
	return net
}

// nextOf is when the first of the objects settles by itself or is corrected again; zero
// if none does.
func nextOf(waits []reconciler.Wait) time.Time {
	var next time.Time
	for _, wait := range waits {
		if !wait.Until.IsZero() && (next.IsZero() || wait.Until.Before(next)) {
			next = wait.Until
		}
	}
	return next
}

// moving are the reasons of waits that end without anybody doing something.
var moving = []reconciler.WaitReason{
	reconciler.WaitReady, reconciler.WaitGone, reconciler.WaitType, reconciler.WaitNamespaceGone, reconciler.WaitUnknown,
}

// stillMoving tells whether anything goes on, beside what has failed.
func stillMoving(waits []reconciler.Wait) bool {
	return slices.ContainsFunc(waits, func(wait reconciler.Wait) bool {
		return slices.Contains(moving, wait.Reason)
	})
}

// anyFailed tells whether an object says that it failed, such as a Job that has
// reached its limit. It may recover, or be replaced, so it is waited for all the same.
func anyFailed(waits []reconciler.Wait) bool {
	return slices.ContainsFunc(waits, func(wait reconciler.Wait) bool { return wait.Reason == reconciler.WaitFailed })
}
