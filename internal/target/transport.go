// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
)

// wrap returns a transport that watches the requests to the cluster.
func (h *health) wrap(next http.RoundTripper) http.RoundTripper {
	return &watchedTransport{health: h, next: next}
}

type probeKey struct{}

// asProbe returns a context for the requests of a probe, which are sent although other requests are
// not.
func asProbe(ctx context.Context) context.Context { return context.WithValue(ctx, probeKey{}, true) }

// errUnresponsive keeps a reconcile that sends many requests, one after the other, from
// waiting for the timeout of each.
var errUnresponsive = errors.New("not sent, because the target cluster gave no answer before and none since")

type watchedTransport struct {
	health *health
	next   http.RoundTripper
}

func (t *watchedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if t.health.unresponsive.Load() && request.Context().Value(probeKey{}) == nil {
		return nil, errUnresponsive
	}
	response, err := t.next.RoundTrip(request)
	if err != nil {
		t.failed(err)
		return response, err
	}
	if response.Body == nil {
		return response, nil
	}
	watch := request.URL.Query().Get("watch")
	switch isWatch := watch == "true" || watch == "1"; {
	case !isWatch:
		response.Body = &watchedBody{response.Body, func(err error) {
			if !errors.Is(err, io.EOF) {
				t.failed(err)
			}
		}}
	case response.StatusCode == http.StatusOK:
		// A watch ends in every way, and no reconcile waits for it: only that it ended
		// counts.
		response.Body = &watchedBody{response.Body, func(err error) {
			if !errors.Is(err, context.Canceled) && !errors.Is(request.Context().Err(), context.Canceled) {
				t.health.invalidate()
			}
		}}
	}
	return response, nil
}

// failed reports a request that failed and was not canceled by the operator.
func (t *watchedTransport) failed(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	timeout, ok := errors.AsType[net.Error](err)
	if ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		t.health.unresponsive.Store(true)
	}
	t.health.invalidate()
}

// WrappedRoundTripper shows the transport below.
func (t *watchedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// watchedBody reports how a body ends.
type watchedBody struct {
	io.ReadCloser
	ended func(err error)
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.ended(err)
	}
	return n, err
}
