// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/test/bench/subject"
	"github.com/corbel-run/corbel/test/wire"
)

// proxy stands between the operators and the API servers, on loopback. It has the
// user of the operators.
type proxy struct {
	*wire.Storm
	server  *http.Server
	cluster *subject.Cluster // how to reach it
	targets []*url.URL

	mu sync.Mutex
	at int // the target of requests
	// moved ends when the target changes.
	moved  context.Context
	move   context.CancelFunc
	change func(http.RoundTripper) http.RoundTripper // nil: nothing
}

// startProxy starts a proxy in calm, to the first of some servers.
func startProxy(configs []*rest.Config, seed uint64) (*proxy, error) {
	p := &proxy{Storm: wire.NewStorm(seed)}
	for _, config := range configs {
		target, err := url.Parse(config.Host)
		if err != nil {
			return nil, err
		}
		p.targets = append(p.targets, target)
	}
	transport, err := rest.TransportFor(configs[0])
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p.cluster = &subject.Cluster{Host: "http://" + listener.Addr().String()}
	p.moved, p.move = context.WithCancel(context.Background())
	quiet := log.New(io.Discard, "", 0)
	storm := p.Wrap(transport)
	reverse := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(p.target()) },
		Transport:     wire.Through(transport, func(r *http.Request) (*http.Response, error) { return p.changed(storm).RoundTrip(r) }),
		FlushInterval: -1, // events of watches are not kept back
		ErrorLog:      quiet,
		// An answer that does not come is a connection that ends.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = &http.Server{ReadHeaderTimeout: time.Minute, ErrorLog: quiet, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(p.generation(), cancel)()
		reverse.ServeHTTP(w, r.WithContext(ctx))
	})}
	go func() { _ = p.server.Serve(listener) }() // it ends with Close
	return p, nil
}

func (p *proxy) target() *url.URL {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.targets[p.at]
}

func (p *proxy) generation() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.moved
}

// aim breaks all requests, and sends further ones to the server of that number. The first has number 1.
func (p *proxy) aim(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move()
	p.moved, p.move = context.WithCancel(context.Background())
	p.at = n - 1
}

// alter changes what is sent and answered; nil ends that.
func (p *proxy) alter(change func(http.RoundTripper) http.RoundTripper) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change = change
}

func (p *proxy) changed(next http.RoundTripper) http.RoundTripper {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.change == nil {
		return next
	}
	return p.change(next)
}

func (p *proxy) close() { _ = p.server.Close() }
