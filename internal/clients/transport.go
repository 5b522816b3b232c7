// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
)

// wrap watches the requests to the target.
func (t *trust) wrap(next http.RoundTripper) http.RoundTripper {
	return &watchedTransport{trust: t, next: next}
}

type probeKey struct{}

// asProbe marks the requests of a probe, which go out although others do not.
func asProbe(ctx context.Context) context.Context { return context.WithValue(ctx, probeKey{}, true) }

// errHung is what requests get while the target does not answer: whoever sends
// many of them, one after the other, must not wait for each.
var errHung = errors.New("not sent, because the target cluster gave no answer before and none since")

type watchedTransport struct {
	trust *trust
	next  http.RoundTripper
}

func (w *watchedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if w.trust.hung.Load() && request.Context().Value(probeKey{}) == nil {
		return nil, errHung
	}
	response, err := w.next.RoundTrip(request)
	if err != nil {
		w.failed(err)
		return response, err
	}
	watch := request.URL.Query().Get("watch")
	switch streams := watch == "true" || watch == "1"; {
	case response.Body == nil:
	case !streams:
		response.Body = &watchedBody{ReadCloser: response.Body, transport: w}
	case response.StatusCode == http.StatusOK:
		response.Body = &streamBody{ReadCloser: response.Body, ctx: request.Context(), ended: w.trust.streamEnded}
	}
	return response, nil
}

// failed passes on what is no wish of our own.
func (w *watchedTransport) failed(err error) {
	if !errors.Is(err, context.Canceled) {
		w.trust.broken(err)
	}
}

// WrappedRoundTripper lets others find the transport below.
func (w *watchedTransport) WrappedRoundTripper() http.RoundTripper { return w.next }

type watchedBody struct {
	io.ReadCloser
	transport *watchedTransport
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.transport.failed(err)
	}
	return n, err
}

// streamBody is the body of a watch, which ends in every way, and nobody waits for
// it: only that it ended counts, unless that is a wish of our own.
type streamBody struct {
	io.ReadCloser
	ctx   context.Context // of the request
	ended func()
}

func (b *streamBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	canceled := errors.Is(err, context.Canceled) || errors.Is(b.ctx.Err(), context.Canceled)
	if err != nil && !canceled {
		b.ended()
	}
	return n, err
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded)
}
