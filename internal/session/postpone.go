// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/patch"
)

// maxAge is how old the last answer about an object may be when another session goes on with it.
const maxAge = 5 * time.Second

// postponed is a session that ended without a write of the status.
type postponed struct {
	object  client.Object
	patcher *patch.Helper
	since   time.Time
}

// Postpone is called while a session is assessed. It puts off the write of the status for at most d, counted from the
// first of several sessions in a row that did. The next session goes on with the object as this one left it, and
// without a read, unless the watch shows another version of it, or the last answer about it is more than five seconds
// old. So a status that is outdated in a moment costs no request.
// If the process ends before, the status is lost, as in a crash: nothing that the next process must know may be in it.
//
// Without the option Version nothing is postponed.
func (p *Session[T]) Postpone(d time.Duration) {
	if p.sessions.Options.Version != nil {
		p.postpone = d
	}
}

// LostStatus reports whether an earlier session put off the write of the status, and this one could not go on with it. What the
// status would have said has to be found out again.
func (p *Session[T]) LostStatus() bool { return p.known != nil && p.known.lost }

// postponeStatus reports whether the write of the status is postponed, and when the object is reconciled again.
func (p *Session[T]) postponeStatus(ctx context.Context) (out reconcile.Result, ok bool) {
	lost := p.known.lost
	p.known.lost = false
	if p.postpone <= 0 || p.refused != nil || lost {
		return out, false
	}
	if _, shown := p.sessions.Options.Version(ctx, p.key); !shown {
		return out, false // the next session could not go on
	}
	now := time.Now()
	since := p.postponedAt
	if since.IsZero() {
		since = now
	}
	left := p.postpone - now.Sub(since)
	if changed, err := p.patcher.MetadataChanged(p.Object); err != nil || changed || left <= 0 {
		return out, false
	}
	p.known.unwritten = false
	p.known.postponed = &postponed{object: p.Object, patcher: p.patcher, since: since}
	p.known.idle.Reset()
	return reconcile.Result{RequeueAfter: left}, true
}

// takePostponed returns the session that ended without a write of the status, if the object is still as it was
// left: the watch shows the same version.
func (s *Sessions[T]) takePostponed(ctx context.Context, key client.ObjectKey) *postponed {
	known := s.memory.entryOf(key)
	left := known.postponed
	known.lost = known.lost || left != nil || known.unwritten
	if known.postponed, known.unwritten = nil, false; left == nil {
		return nil
	}
	resourceVersion, at := left.patcher.ServerState()
	if shown, ok := s.Options.Version(ctx, key); !ok || shown != resourceVersion || time.Since(at) > maxAge {
		return nil
	}
	known.lost, known.unwritten = false, true
	return left
}
