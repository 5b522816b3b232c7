// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// access decides which requests are answered.
type access struct {
	token string
	hosts []string // of requests; empty allows all
}

// tokenHeader has the token of a request. A cookie would not do: a browser sends it to every port of the machine. What a page
// stores is for its own port only. A stream has the token in its query, because a browser adds no header to its request.
const tokenHeader = "X-Corbel-Token"

// minToken is the least length of a token, in bytes: it must not be guessed.
const minToken = 16

// newAccess checks the options that protect the server.
func newAccess(o Options) (*access, error) {
	if o.Address == "" && o.Token == "" {
		return &access{hosts: o.Hosts}, nil // the program that mounts the handler authenticates
	}
	host, port, err := net.SplitHostPort(o.Address)
	address, parseErr := netip.ParseAddr(host)
	switch {
	case err != nil || parseErr != nil || !address.IsLoopback():
		return nil, errors.New("the address of the server must be an IP address of this machine only, with the port, such as 127.0.0.1:8080")
	case len(o.Hosts) > 0:
		return nil, errors.New("a server with an address answers by that only, and not by hosts")
	case len(o.Token) < minToken:
		return nil, errors.New("a server with an address needs a token of at least 16 characters")
	}
	hosts := []string{o.Address, net.JoinHostPort("localhost", port)}
	return &access{token: o.Token, hosts: hosts}, nil
}

// check returns why a request is refused. The page may be opened from anywhere, and its files need no token, because they tell nothing.
func (a *access) check(r *http.Request) error {
	if len(a.hosts) > 0 && !slices.Contains(a.hosts, r.Host) { // a name of another site that leads here, by DNS rebinding
		return refused{http.StatusForbidden, "the server does not answer by the host of this request"}
	}
	if isPage := r.URL.Path == "/" && isRead(r); !isPage && !a.isSameOrigin(r) {
		return refused{http.StatusForbidden, "the request comes from another site"}
	}
	if !isRead(r) && (r.Header.Get("X-Corbel") != "1" || r.Header.Get("Content-Type") != "application/json") {
		return refused{http.StatusForbidden, "the request lacks the header X-Corbel: 1, or is no application/json"}
	}
	given := r.Header.Get(tokenHeader)
	if r.URL.Path == "/api/stream" {
		given = r.URL.Query().Get("token")
	}
	if a.token != "" && strings.HasPrefix(r.URL.Path, "/api/") && subtle.ConstantTimeCompare([]byte(given), []byte(a.token)) != 1 {
		return refused{http.StatusUnauthorized, "open the address that corbel ui printed"}
	}
	return nil
}

// isSameOrigin reports whether no other site sends the request. Programs that are no browsers say nothing.
func (a *access) isSameOrigin(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	if site != "" && site != "same-origin" && (site != "none" || !isRead(r)) {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" || site == "same-origin" && a.token == "" { // a proxy may change the host
		return true
	}
	from, err := url.Parse(origin)
	return err == nil && from.Host == r.Host
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }
