// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
)

// Options are those of a server.
type Options struct {
	// Write allows actions: reconcile, suspend, resume, roll back.
	//
	// Default: false
	Write bool
	// Address is an IP address of the loopback interface with the port, such as 127.0.0.1:8080, with a Token.
	// Requests by another name are refused. Leave both empty behind a filter that authenticates requests.
	//
	// Default: none
	Address string
	// Token is the secret that opens the page, as the query "?token=" of its address. It has at least 16
	// characters.
	//
	// Default: none
	Token string
	// Hosts are the values of the header Host that a server without an Address accepts, such as "ui.example.com".
	//
	// Default: all
	Hosts []string
	// Namespace restricts the page to the components of a namespace, and to types without one.
	//
	// Default: all namespaces
	Namespace string
	// Context is the context of the kubeconfig, to be shown.
	//
	// Default: none
	Context string
	// Version is the version of the program, to be shown.
	//
	// Default: none
	Version string
}

// Server answers the page and its requests. It is safe for concurrent use.
type Server struct {
	options Options
	server  string // the URL of the API server
	access  *access
	cluster *cluster
	fleet   *fleet
	streams chan struct{} // one for each open stream
	routes  *http.ServeMux
	closed  chan struct{}
	end     func() // closes closed
}

// New returns a server for the cluster and the user of a configuration. Nothing is asked until a page is open. The
// error says what is wrong with the options or the configuration.
func New(config *rest.Config, options Options) (*Server, error) {
	access, err := newAccess(options)
	if err != nil {
		return nil, err
	}
	cluster, err := newCluster(config)
	if err != nil {
		return nil, err
	}
	s := &Server{
		closed: make(chan struct{}), options: options, server: config.Host, access: access, cluster: cluster, fleet: &fleet{cluster: cluster, namespace: options.Namespace},
		streams: make(chan struct{}, maxStreams), routes: http.NewServeMux(),
	}
	s.end = sync.OnceFunc(func() { close(s.closed) })
	s.routes.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { file(w, r, "index.html") })
	s.routes.HandleFunc("GET /{file}", func(w http.ResponseWriter, r *http.Request) { file(w, r, r.PathValue("file")) })
	s.routes.HandleFunc("GET /api/stream", s.stream)
	for route, answer := range map[string]func(*http.Request) (any, error){
		"GET /api/info": s.info, "GET /api/why": answering(s.component, s.why), "GET /api/history": answering(s.component, s.history), "GET /api/spec": answering(s.component, s.spec),
		"GET /api/events": answering(s.read, s.events), "GET /api/object": answering(s.read, s.object), "GET /api/log": answering(s.read, s.log), "POST /api/manifest": answering(s.read, s.manifest),
		"POST /api/plan": answering(s.component, s.plan), "POST /api/diff": answering(s.component, s.diff), "POST /api/action": s.action,
	} {
		s.routes.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			value, err := answer(r)
			if err != nil {
				fail(w, err)
				return
			}
			writeJSON(w, http.StatusOK, value)
		})
	}
	s.routes.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, refused{http.StatusNotFound, "there is no such page"})
	})
	return s, nil
}

// Close ends all streams, and with them the watches. Give it to RegisterOnShutdown of an http.Server, which waits for streams without end.
func (s *Server) Close() { s.end() }

// answering makes an answer one about the component that the query names, or about that with its dependents.
func answering[T any](read func(context.Context, address) (*inspect.Reader, T, error), answer func(*http.Request, *inspect.Reader, T) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		reader, subject, err := read(r.Context(), addressIn(r))
		if err != nil {
			return nil, err
		}
		return answer(r, reader, subject)
	}
}

// securityHeaders are those of each answer. The policy allows nothing but the files of the page and its own server.
var securityHeaders = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
	"X-Content-Type-Options":       "nosniff",
	"Referrer-Policy":              "no-referrer",
	"Cache-Control":                "no-store",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
}

// ServeHTTP answers a request. All paths are relative to where the handler is mounted.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range securityHeaders {
		w.Header().Set(name, value)
	}
	if err := s.access.check(r); err != nil {
		fail(w, err)
		return
	}
	s.routes.ServeHTTP(w, r)
}

//go:embed static
var static embed.FS

// contentTypes are those of the files, because those that the system has may be others.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

func file(w http.ResponseWriter, _ *http.Request, name string) {
	text, err := fs.ReadFile(static, path.Join("static", name))
	if err != nil || contentTypes[path.Ext(name)] == "" {
		fail(w, refused{http.StatusNotFound, "there is no such page"})
		return
	}
	w.Header().Set("Content-Type", contentTypes[path.Ext(name)])
	_, _ = w.Write(text)
}

func (s *Server) info(*http.Request) (any, error) {
	return map[string]any{
		"version": s.options.Version, "context": s.options.Context, "server": s.server, "namespace": s.options.Namespace, "write": s.options.Write,
	}, nil
}

// refused is an error with its status.
type refused struct {
	status int
	text   string
}

// Error is what is wrong.
func (r refused) Error() string { return r.text }

func bad(format string, arguments ...any) error {
	return refused{http.StatusBadRequest, fmt.Sprintf(format, arguments...)}
}

// fail answers with an error.
func fail(w http.ResponseWriter, err error) {
	writeJSON(w, statusOf(err), map[string]string{"error": err.Error()})
}

// statusOf is the status for an error: what the API server said, or that it did not answer.
func statusOf(err error) int {
	if r, ok := errors.AsType[refused](err); ok {
		return r.status
	}
	switch {
	case apierrors.IsNotFound(err):
		return http.StatusNotFound
	case apierrors.IsForbidden(err):
		return http.StatusForbidden
	case apierrors.IsConflict(err):
		return http.StatusConflict
	case apierrors.IsBadRequest(err), apierrors.IsInvalid(err):
		return http.StatusBadRequest
	}
	return http.StatusBadGateway
}

// isDown reports whether the API server could not be asked, as far as an error says that.
func isDown(err error) bool {
	_, isURL := errors.AsType[*url.Error](err)
	_, isNet := errors.AsType[net.Error](err)
	return isURL || isNet || apierrors.IsServiceUnavailable(err) || apierrors.IsUnauthorized(err)
}

// maxBody bounds what a page sends, in bytes. It is more than a plan may have.
const maxBody = 2 << 20

// writeJSON answers with a value. Characters that mean something in HTML are escaped.
func writeJSON(w http.ResponseWriter, status int, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// readJSON reads what a page sends.
func readJSON(r *http.Request, into any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return bad("the request cannot be read: %v", err)
	}
	return nil
}
