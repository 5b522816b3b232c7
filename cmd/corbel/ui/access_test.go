// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"maps"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/test/check"
)

// unreachable is a cluster that is not asked.
var unreachable = &rest.Config{Host: "https://127.0.0.1:1"}

func newServer(t *testing.T, options Options) *Server {
	t.Helper()
	s := check.Must(New(unreachable, options))(t)
	t.Cleanup(s.Close)
	return s
}

func TestWhichRequestsAreAnswered(t *testing.T) {
	const address, wrong = "127.0.0.1:8080", "not the token of the tests"
	command := newServer(t, Options{Address: address, Token: token})
	mounted, named := newServer(t, Options{}), newServer(t, Options{Hosts: []string{"ui.example.com"}})
	type headers = map[string]string
	known := headers{"X-Corbel-Token": token}
	with := func(more headers) headers {
		all := maps.Clone(known)
		for name, value := range more {
			all[name] = value
		}
		return all
	}
	post := headers{"X-Corbel": "1", "Content-Type": "application/json"}
	for name, test := range map[string]struct {
		server       *Server
		method, path string
		host         string
		headers      headers
		status       int
	}{
		"the page":                           {command, "GET", "/", address, known, 200},
		"by the name localhost":              {command, "GET", "/", "localhost:8080", known, 200},
		"a script of the page":               {command, "GET", "/app.js", address, known, 200},
		"the page with the token":            {command, "GET", "/?token=" + url.QueryEscape(token), address, known, 200},
		"from a link of another site":        {command, "GET", "/", address, with(headers{"Sec-Fetch-Site": "cross-site"}), 200},
		"an answer":                          {command, "GET", "/api/info", address, with(headers{"Sec-Fetch-Site": "same-origin"}), 200},
		"an answer to its own origin":        {command, "GET", "/api/info", address, with(headers{"Origin": "http://" + address}), 200},
		"the page without the token":         {command, "GET", "/", address, nil, 200},
		"the page with a wrong token":        {command, "GET", "/?token=" + wrong[:3], address, nil, 200},
		"an answer without the token":        {command, "GET", "/api/info", address, nil, 401},
		"a stream without the token":         {command, "GET", "/api/stream", address, nil, 401},
		"a stream with a wrong token":        {command, "GET", "/api/stream?token=" + wrong[:3], address, nil, 401},
		"a wrong token":                      {command, "GET", "/api/info", address, headers{"X-Corbel-Token": wrong}, 401},
		"an empty token":                     {command, "GET", "/api/info", address, headers{"X-Corbel-Token": ""}, 401},
		"the token as a cookie":              {command, "GET", "/api/info", address, headers{"Cookie": "corbel-token=" + strings.ReplaceAll(token, " ", "+")}, 401},
		"the token in the query":             {command, "GET", "/api/info?token=" + url.QueryEscape(token), address, nil, 401},
		"a name that leads here":             {command, "GET", "/", "evil.example.com:8080", known, 403},
		"the token by such a name":           {command, "GET", "/api/info", "evil.example.com:8080", known, 403},
		"another port":                       {command, "GET", "/", "127.0.0.1:9090", known, 403},
		"another site":                       {command, "GET", "/api/info", address, with(headers{"Sec-Fetch-Site": "cross-site"}), 403},
		"another port of the machine":        {command, "GET", "/api/stream", address, with(headers{"Sec-Fetch-Site": "same-site"}), 403},
		"another origin":                     {command, "GET", "/api/info", address, with(headers{"Origin": "http://127.0.0.1:9090"}), 403},
		"the origin null":                    {command, "GET", "/api/info", address, with(headers{"Origin": "null"}), 403},
		"a post from nowhere":                {command, "POST", "/api/action", address, with(headers{"X-Corbel": "1", "Content-Type": "application/json", "Sec-Fetch-Site": "none"}), 403},
		"a post without its header":          {command, "POST", "/api/action", address, with(headers{"Content-Type": "application/json"}), 403},
		"a post of a form":                   {command, "POST", "/api/action", address, with(headers{"X-Corbel": "1", "Content-Type": "application/x-www-form-urlencoded"}), 403},
		"a post without the token":           {command, "POST", "/api/action", address, post, 401},
		"an action of a server that reads":   {command, "POST", "/api/action", address, with(post), 403},
		"a get of an action":                 {command, "GET", "/api/action", address, known, 404},
		"a get of a difference":              {command, "GET", "/api/diff", address, known, 404},
		"a difference without the header":    {command, "POST", "/api/diff", address, known, 403},
		"another method":                     {command, "DELETE", "/api/action", address, known, 403},
		"a file out of the folder":           {command, "GET", "/..%2fdoc.go", address, known, 404},
		"no such file":                       {command, "GET", "/none.js", address, known, 404},
		"mounted":                            {mounted, "GET", "/api/info", "ui.example.com", nil, 200},
		"mounted, behind a proxy":            {mounted, "GET", "/api/info", "10.0.0.1:8443", headers{"Origin": "https://ui.example.com", "Sec-Fetch-Site": "same-origin"}, 200},
		"mounted, from another site":         {mounted, "GET", "/api/info", "ui.example.com", headers{"Sec-Fetch-Site": "cross-site"}, 403},
		"mounted, from another origin":       {mounted, "GET", "/api/info", "ui.example.com", headers{"Origin": "https://evil.example.com"}, 403},
		"mounted, by one of its hosts":       {named, "GET", "/api/info", "ui.example.com", nil, 200},
		"mounted, by another host":           {named, "GET", "/", "evil.example.com", nil, 403},
		"mounted, a post without its header": {mounted, "POST", "/api/plan", "ui.example.com", nil, 403},
	} {
		r := httptest.NewRequest(test.method, test.path, strings.NewReader("{}"))
		r.Host = test.host
		for name, value := range test.headers {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		test.server.ServeHTTP(w, r)
		if w.Code != test.status {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if w.Header().Get("Set-Cookie") != "" { // a browser sends a cookie to every port of the machine
			t.Errorf("%s: it sets a cookie", name)
		}
		for header, value := range securityHeaders {
			if w.Header().Get(header) != value {
				t.Errorf("%s: lacks the header %s", name, header)
			}
		}
	}
}

func TestOptionsThatWouldOpenTheServerAreRefused(t *testing.T) {
	for name, options := range map[string]Options{
		"all addresses":      {Address: "0.0.0.0:8080", Token: token},
		"a public address":   {Address: "192.0.2.1:8080", Token: token},
		"a name":             {Address: "localhost:8080", Token: token},
		"no port":            {Address: "127.0.0.1", Token: token},
		"no token":           {Address: "127.0.0.1:8080"},
		"a short token":      {Address: "127.0.0.1:8080", Token: "0123456789"},
		"no address":         {Token: token},
		"other hosts":        {Address: "127.0.0.1:8080", Token: token, Hosts: []string{"ui.example.com"}},
		"an address of IPv6": {Address: "[2001:db8::1]:8080", Token: token},
	} {
		if _, err := New(unreachable, options); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, address := range []string{"127.0.0.1:8080", "[::1]:8080", "127.1.2.3:1"} {
		if _, err := New(unreachable, Options{Address: address, Token: token}); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}
