// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/test/bench/subject"
	"github.com/corbel-run/corbel/test/wire"
)

// proxy stands between the operators and the API server, on loopback. It has the
// user of the operators.
type proxy struct {
	*wire.Storm
	server  *http.Server
	cluster *subject.Cluster // how to reach it
}

// startProxy starts a proxy in calm.
func startProxy(config *rest.Config, seed uint64) (*proxy, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	storm := wire.NewStorm(seed)
	p := &proxy{Storm: storm, cluster: &subject.Cluster{Host: "http://" + listener.Addr().String()}}
	quiet := log.New(io.Discard, "", 0)
	p.server = &http.Server{ReadHeaderTimeout: time.Minute, ErrorLog: quiet, Handler: &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     storm.Wrap(transport),
		FlushInterval: -1, // events of watches are not kept back
		ErrorLog:      quiet,
		// An answer that does not come is a connection that ends.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}
	go func() { _ = p.server.Serve(listener) }() // it ends with Close
	return p, nil
}

func (p *proxy) close() { _ = p.server.Close() }
