// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/metrics"
)

// longestWait is how long we let a server make us wait before a retry.
const longestWait = 10 * time.Second

// boundedClient returns a client that follows no redirects and with answers that are
// bounded.
func boundedClient(config *rest.Config, maxBytes int64) (*http.Client, error) {
	plain, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &boundedTransport{next: metrics.CountRequests(plain.Transport), maxBytes: maxBytes}}, nil
}

// boundedTransport bounds how much a server can make us read and wait, and refuses redirects.
type boundedTransport struct {
	next     http.RoundTripper
	maxBytes int64
}

func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if response.StatusCode/100 == 3 && response.StatusCode != http.StatusNotModified {
		if response.Body != nil {
			_ = response.Body.Close()
		}
		return nil, protocolError("the server answers %d, a redirect to somewhere else, which is not followed because it would send our credentials there", response.StatusCode)
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		// Neither for hours nor, with a negative number, without a pause.
		seconds = min(max(seconds, 1), int(longestWait/time.Second))
		response.Header.Set("Retry-After", strconv.Itoa(seconds))
	}
	if watch := request.URL.Query().Get("watch"); response.Body != nil && watch != "true" && watch != "1" {
		response.Body = &boundedBody{ReadCloser: response.Body, left: t.maxBytes, max: t.maxBytes}
	}
	return response, nil
}

// CloseIdleConnections lets http.Client find the transport below.
func (t *boundedTransport) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(t.next) }

// WrappedRoundTripper returns the transport below.
func (t *boundedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// contextTransport ends requests with a context, for a client that passes none.
type contextTransport struct {
	ctx  context.Context
	next http.RoundTripper
}

func (t contextTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	return t.next.RoundTrip(request.WithContext(t.ctx))
}

type boundedBody struct {
	io.ReadCloser
	left, max int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, b.tooLarge()
	}
	// With one byte more than is left, an answer that just fits differs from a larger one.
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, b.tooLarge()
	}
	return n, err
}

func (b *boundedBody) tooLarge() error {
	return protocolError("the server's answer is larger than %d bytes", b.max)
}

type warningsKey struct{}

// WithWarnings returns a context in which note gets the warnings of the server about requests, such as unknown fields.
func WithWarnings(ctx context.Context, note func(text string)) context.Context {
	return context.WithValue(ctx, warningsKey{}, note)
}

// warnings writes warnings of the server to the log, and passes them to the function of the context.
type warnings struct{}

func (warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _ string, text string) {
	const miscellaneous = 299 // the code of Kubernetes
	if code == miscellaneous && text != "" {
		log.FromContext(ctx).V(1).Info("warning of the server", "warning", text)
		if note, ok := ctx.Value(warningsKey{}).(func(string)); ok {
			note(text)
		}
	}
}
