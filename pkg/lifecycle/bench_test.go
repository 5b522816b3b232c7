// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/widget"
)

const (
	finalizer = "test.corbel.run/pump"
	foreign   = "test.corbel.run/other"
	interval  = 10 * time.Minute
)

var key = client.ObjectKey{Namespace: "ns", Name: "a"}

// handler does what the test says, and by default nothing, with success.
type handler struct {
	calls  []string
	claim  func(context.Context, *widget.Widget) error
	apply  action
	remove action
	look   func(context.Context, *widget.Widget) error

	suspended, orphaned func() bool
	finished            func()
}

func (h *handler) Claim(ctx context.Context, w *widget.Widget) error {
	h.calls = append(h.calls, "Claim")
	if h.claim != nil {
		return h.claim(ctx, w)
	}
	return nil
}

func (h *handler) CreateOrUpdate(ctx context.Context, w *widget.Widget, commit lifecycle.Commit) (result.Result, error) {
	h.calls = append(h.calls, "CreateOrUpdate")
	if h.apply != nil {
		return h.apply(ctx, w, commit)
	}
	return result.Success, nil
}

func (h *handler) Delete(ctx context.Context, w *widget.Widget, commit lifecycle.Commit) (result.Result, error) {
	h.calls = append(h.calls, "Delete")
	if h.remove != nil {
		return h.remove(ctx, w, commit)
	}
	return result.Success, nil
}

func (h *handler) UpdateStatus(ctx context.Context, w *widget.Widget) error {
	h.calls = append(h.calls, "UpdateStatus")
	if h.look != nil {
		return h.look(ctx, w)
	}
	return nil
}

func (h *handler) Suspended(*widget.Widget) bool { return h.suspended != nil && h.suspended() }
func (h *handler) Orphaned(*widget.Widget) bool  { return h.orphaned != nil && h.orphaned() }
func (h *handler) ForgetObject(context.Context, client.ObjectKey) {
	h.calls = append(h.calls, "ForgetObject")
	if h.finished != nil {
		h.finished()
	}
}

// action is a method of a handler that acts.
type action = func(context.Context, *widget.Widget, lifecycle.Commit) (result.Result, error)

// returns is an action that does nothing.
func returns(res result.Result, err error) action {
	return func(context.Context, *widget.Widget, lifecycle.Commit) (result.Result, error) { return res, err }
}

// bench is a loop on a server with one widget.
type bench struct {
	*testing.T
	server   *widget.Server
	recorder *events.FakeRecorder
	loop     reconcile.Reconciler
	handler  *handler
	options  session.Options[*widget.Widget]
}

func newBench(t *testing.T, h *handler, change func(*widget.Widget)) *bench {
	t.Helper()
	w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "uid-1", Generation: 1}}
	if change != nil {
		change(w)
	}
	b := &bench{T: t, server: widget.NewServer(w), recorder: events.NewFakeRecorder(20), handler: h}
	b.use(h)
	return b
}

// use makes the loop anew with another handler.
func (b *bench) use(h lifecycle.Handler[*widget.Widget]) {
	b.Helper()
	b.options = session.Options[*widget.Widget]{Client: b.server, Finalizer: finalizer, Recorder: b.recorder, RequeueInterval: interval, Jitter: -1}
	b.rebuild(h)
}

func (b *bench) rebuild(h lifecycle.Handler[*widget.Widget]) {
	b.Helper()
	b.loop = check.Must(lifecycle.NewReconcilerOf(h, b.options))(b)
}

// reconcile runs one reconcile and checks the conditions after it.
func (b *bench) reconcile() (reconcile.Result, error) {
	b.Helper()
	return b.passWith(b.Context())
}

func (b *bench) mustReconcile() time.Duration {
	b.Helper()
	out := check.Must(b.reconcile())(b)
	return out.RequeueAfter
}

func (b *bench) passWith(ctx context.Context) (reconcile.Result, error) {
	b.Helper()
	b.server.Requests()
	b.handler.calls = nil
	out, err := b.loop.Reconcile(ctx, reconcile.Request{NamespacedName: key})
	if w := b.read(); w != nil && len(w.Status.Conditions) > 0 {
		conditionstest.Check(b, w)
	}
	return out, err
}

// read returns the widget on the server, or nil if it is gone.
func (b *bench) read() *widget.Widget {
	b.Helper()
	w := &widget.Widget{}
	err := b.server.Direct.Get(context.WithoutCancel(b.Context()), key, w)
	if client.IgnoreNotFound(err) != nil {
		b.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return w
}

func (b *bench) update(change func(*widget.Widget)) {
	b.Helper()
	w := b.read()
	change(w)
	check.NoError(b, b.server.Direct.Update(b.Context(), w))
}

func (b *bench) delete() {
	b.Helper()
	check.NoError(b, b.server.Direct.Delete(b.Context(), b.read()))
}

func (b *bench) wantCalls(want ...string) {
	b.Helper()
	check.EqualNamed(b, "calls", want, b.handler.calls, cmpopts.EquateEmpty())
}

func (b *bench) wantRequests(want ...string) {
	b.Helper()
	check.EqualNamed(b, "requests", want, b.server.Requests(), cmpopts.EquateEmpty())
}

func (b *bench) wantReady(status metav1.ConditionStatus, reason, message string) {
	b.Helper()
	ready := conditions.Get(b.read(), "Ready")
	if ready == nil || ready.Status != status || ready.Reason != reason || ready.Message != message {
		b.Errorf("Ready is %+v, want %s, %s, %q", ready, status, reason, message)
	}
}

func claimed(w *widget.Widget) { w.Finalizers = []string{finalizer} }
