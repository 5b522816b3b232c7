// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/test/wire"
)

// busySecrets answers patches of Secrets as a server does that has too much to do.
type busySecrets struct{ busy atomic.Bool }

func (s *busySecrets) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if !s.busy.Load() || r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/secrets/") {
			return next.RoundTrip(r)
		}
		const body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","message":"too much to do","details":{"retryAfterSeconds":7},"code":429}`
		return &http.Response{
			StatusCode: http.StatusTooManyRequests, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
		}, nil
	})
}

// The queue makes one of the end of a component and the beginning of another one.
func TestASuccessorIsRequeuedUntilTheSecretsOfItsPredecessorAreRemoved(t *testing.T) {
	b := newBed(t, rendering(), component.ReconcilerOptions{})
	var server busySecrets
	b.anewVia(server.wrap)
	b.create(widget.Spec{Values: many(0, 30)})
	b.until(component.StateReady)
	before := len(b.secrets())
	b.check(b.client.Delete(t.Context(), b.get()))
	b.patchFinalizers()
	for _, secret := range b.secrets() { // as the garbage collector does
		b.check(b.client.Delete(t.Context(), &secret))
	}
	b.create(widget.Spec{Values: map[string]string{"other": "1"}})
	server.busy.Store(true)
	for range 3 {
		w, result, err := b.reconcile()
		state, reason, message := w.Status.GetState()
		if state == component.StatePending && reason == v1alpha1.ReasonFirstSeen {
			continue
		}
		if state != component.StatePending || reason != v1alpha1.ReasonRetrying || !strings.Contains(message, "an earlier Widget "+b.key("main").String()) {
			t.Errorf("%s, %s: %s", state, reason, message)
		}
		if err != nil || result.RequeueAfter.Seconds() < 7 || result.RequeueAfter.Seconds() > 8 {
			t.Errorf("the reconcile returned %+v, %v", result, err)
		}
	}
	if _, exists := b.configMap("other"); exists || len(b.secrets()) != before || before == 0 {
		t.Errorf("config map: %t; %d Secrets of %d", exists, len(b.secrets()), before)
	}
	server.busy.Store(false)
	b.until(component.StateReady)
	if left := b.secrets(); len(left) > 0 {
		t.Errorf("%d Secrets of %d are left", len(left), before)
	}
	b.check(b.client.Delete(t.Context(), b.get()))
	b.untilGone()
}
