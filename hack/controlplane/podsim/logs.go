// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package podsim

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/util/cert"
)

// serveLogs serves the logs of containers on loopback until the context ends, at the path
// and port at which the API server asks a kubelet for them.
func serveLogs(ctx context.Context, pods corelisters.PodLister) (port int32, err error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		return 0, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return 0, err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		return 0, fmt.Errorf("listen for requests for logs: %w", err)
	}
	server := &http.Server{Handler: logs(pods)}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	return int32(listener.Addr().(*net.TCPAddr).Port), nil
}

// logs answers with what the annotation of the pod says.
func logs(pods corelisters.PodLister) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		pod, err := pods.Pods(r.PathValue("namespace")).Get(r.PathValue("pod"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, tail(pod.Annotations[annotationPrefix+"log"], r.FormValue("tailLines")))
	})
	return mux
}

// tail returns the last lines of a text, or all if the number is none. Each ends with a line break.
func tail(text, number string) string {
	if text == "" {
		return ""
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if n, err := strconv.Atoi(number); err == nil && n >= 0 && n < len(lines) {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(append(lines, ""), "\n")
}
