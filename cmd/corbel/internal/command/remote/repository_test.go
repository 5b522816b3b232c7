// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

// indexed returns the line of an index for a version.
func indexed(version, address string, data []byte) string {
	return fmt.Sprintf("  - {version: %q, urls: [%q], digest: %s}\n", version, address, strings.TrimPrefix(digestOf(data), "sha256:"))
}

func TestChartsOfRepositories(t *testing.T) {
	r := newRegistry(t)
	registry := "oci://" + strings.TrimPrefix(r.URL, "http://") + "/charts"
	one, two, early := packed(t, "1.0.0"), packed(t, "1.10.0"), packed(t, "2.0.0-rc.1")
	for tag, data := range map[string][]byte{"1.0.0": one, "1.10.0": two, "2.0.0-rc.1": early} {
		r.chart("charts/db", tag, configType, chartType, data)
	}
	r.chart("charts/tagged", "v1.0.0", configType, chartType, one)
	asked := map[string]int{}
	files := map[string][]byte{}
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		asked[request.URL.String()]++
		data, ok := files[request.URL.Path]
		switch {
		case strings.HasPrefix(request.URL.Path, "/guarded/"):
			w.WriteHeader(http.StatusForbidden)
		case !ok:
			http.NotFound(w, request)
		default:
			w.Header().Set("Content-Encoding", "gzip") // some servers say so of packed charts
			if strings.HasSuffix(request.URL.Path, ".yaml") {
				w.Header().Del("Content-Encoding")
			}
			_, _ = w.Write(data)
		}
	}))
	t.Cleanup(web.Close)
	gone := httptest.NewServer(r)
	gone.Close()
	files["/a/db-1.0.0.tgz"], files["/two.tgz"], files["/a/early.tgz"] = one, two, early
	files["/a/index.yaml"] = []byte("apiVersion: v1\nentries:\n  db:\n" + indexed("v1.0.0", "db-1.0.0.tgz", one) + indexed("1.10.0", web.URL+"/two.tgz", two) +
		"  - {version: 1.11.0}\n  - {version: none, urls: [x]}\n" + indexed("2.0.0-rc.1", "/a/early.tgz", early) +
		"  other:\n" + indexed("1.0.0", registry+"/db:1.0.0", one) + "  forged:\n" + indexed("1.0.0", "/two.tgz", one) + "  lost:\n" + indexed("1.0.0", "lost.tgz?token=secret", one) +
		"  plain:\n" + indexed("1.0.0", "ftp://example.com/a.tgz", one) + "  bad:\n" + indexed("1.0.0", "%", one) + "  empty: []\n")
	files["/page/index.yaml"], files["/large/index.yaml"] = []byte("<html>"), bytes.Repeat([]byte(" "), maxIndex+1)

	repositories := &Repositories{Client: Client{PlainHTTP: true, Transport: web.Client().Transport}}
	for name, test := range map[string]struct {
		repository, chart, version string
		data                       []byte
	}{
		"the newest that fits, at another address": {web.URL + "/a", "db", "1.x", two},
		"the newest release":                       {web.URL + "/a/", "db", "*", two},
		"a version, relative to the repository":    {web.URL + "/a?token=secret", "db", "v1.0.0", one},
		"a version without its v":                  {web.URL + "/a", "db", "1.0.0", one},
		"a pre-release, relative to the server":    {web.URL + "/a", "db", ">=2.0.0-0", early},
		"one that the index has in a registry":     {web.URL + "/a", "other", "*", one},
		"the newest that fits, of a registry":      {registry, "db", "^1.0.0", two},
		"a version of a registry, with its v":      {registry, "tagged", "v1.0.0", one},
		"a version of a registry":                  {registry + "/", "db", "2.0.0-rc.1", early},
	} {
		t.Run(name, func(t *testing.T) {
			data := check.Must(repositories.FetchVersion(t.Context(), test.repository, test.chart, test.version))(t)
			if !bytes.Equal(data, test.data) {
				t.Errorf("got %q", data)
			}
		})
	}
	if asked["/a/index.yaml"] > 2 || asked["/a/db-1.0.0.tgz?token=secret"] != 1 { // one for each form of the address
		t.Errorf("the requests are %v", asked)
	}
	for name, test := range map[string]struct {
		repository, chart, version, want string
	}{
		"no chart":                          {web.URL + "/a?token=secret", "none", "1.0.0", "the repository " + web.URL + "/a has no such chart"},
		"no version of a chart":             {web.URL + "/a", "empty", "1.0.0", "has no such chart"},
		"no version that fits":              {web.URL + "/a", "db", "^3.0.0", "the repository " + web.URL + "/a cannot be used: there is no version of it that fits ^3.0.0, but 2.0.0-rc.1, 1.10.0, 1.0.0"},
		"no version that fits in registry":  {registry, "db", "^3.0.0", "the chart " + registry + "/db cannot be fetched: there is no version of it that fits ^3.0.0, but 2.0.0-rc.1, 1.10.0, 1.0.0"},
		"a version that is none":            {web.URL + "/a", "db", "new", `"new" is no range of versions`},
		"another digest":                    {web.URL + "/a", "forged", "1.0.0", "the chart " + web.URL + "/two.tgz has the digest " + digestOf(two) + ", and the index of the repository " + web.URL + "/a has " + digestOf(one) + ": repeat"},
		"a file that is missing":            {web.URL + "/a", "lost", "1.0.0", "the chart " + web.URL + "/a/lost.tgz cannot be fetched: the server answers 404 Not Found"},
		"an address that is none":           {web.URL + "/a", "bad", "1.0.0", "has no valid address for the version 1.0.0"},
		"an address of another kind":        {web.URL + "/a", "plain", "1.0.0", "the chart ftp://example.com/a.tgz cannot be fetched"},
		"no index":                          {web.URL + "/b", "db", "1.0.0", "the index of the repository " + web.URL + "/b cannot be fetched: the server answers 404 Not Found: check the address"},
		"a page":                            {web.URL + "/page", "db", "1.0.0", "its index.yaml is not valid"},
		"an index that is too large":        {web.URL + "/large", "db", "1.0.0", "it is larger than 64 MiB"},
		"an index that needs a user":        {web.URL + "/guarded", "db", "1.0.0", "the server refuses access (403 Forbidden), and corbel has no credentials for web servers"},
		"a server that is away":             {gone.URL, "db", "1.0.0", "the server cannot be reached: check the address and the network"},
		"a password":                        {"https://ann:secret@example.com", "db", "1.0.0", "holds a user or a password"},
		"a registry that does not have it":  {registry, "none", "1.0.0", "the registry has no such chart"},
		"a registry without this version":   {registry, "db", "1.2.0", "the registry has no 1.2.0 of it, but 2.0.0-rc.1, 1.10.0, 1.0.0"},
		"an address that cannot be fetched": {"ftp://example.com", "db", "1.0.0", "use https, or --plain-http"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := repositories.FetchVersion(t.Context(), test.repository, test.chart, test.version)
			check.Fails(t, err, test.want)
			if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n")) {
				t.Errorf("it quotes a secret, or is more than a line: %v", err)
			}
		})
	}
}

func TestCredentialsGoByTLSToARegistryThatHasIt(t *testing.T) {
	r := newRegistry(t)
	r.chart("charts/db", "1.0.0", configType, chartType, packed(t, "x"))
	secure := httptest.NewTLSServer(r)
	t.Cleanup(secure.Close)
	client := Client{PlainHTTP: true, Transport: secure.Client().Transport}
	if _, err := client.Fetch(t.Context(), "oci://"+strings.TrimPrefix(secure.URL, "https://")+"/charts/db"); err != nil {
		t.Error(err)
	}
}
