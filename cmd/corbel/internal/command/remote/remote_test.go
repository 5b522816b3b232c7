// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/corbel-run/corbel/test/check"
)

// server is a registry in this process. It has repositories below charts/.
type server struct {
	*httptest.Server
	tags      map[string][]string // by repository
	manifests map[string][]byte   // by repository and tag or digest
	blobs     map[string][]byte   // by digest
	types     map[string]string   // of manifests, by digest
	broken    string              // the digest of a blob that is sent in part
	forged    string              // the digest of a blob that is not what is sent
	moved     string              // the digest of a blob that is on a server that refuses access
	guarded   bool                // asks for a user
}

func newRegistry(t *testing.T) *server {
	t.Helper()
	r := &server{tags: map[string][]string{}, manifests: map[string][]byte{}, blobs: map[string][]byte{}, types: map[string]string{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	for _, name := range []string{"HELM_REGISTRY_CONFIG", "DOCKER_CONFIG"} {
		t.Setenv(name, filepath.Join(t.TempDir(), "none"))
	}
	return r
}

// blob keeps a blob, and returns its descriptor.
func (r *server) blob(mediaType string, data []byte) ocispec.Descriptor {
	r.blobs[digestOf(data)] = data
	return descriptor(mediaType, data)
}

func descriptor(mediaType string, data []byte) ocispec.Descriptor {
	var d ocispec.Descriptor
	text, _ := json.Marshal(map[string]any{"mediaType": mediaType, "digest": digestOf(data), "size": len(data)})
	_ = json.Unmarshal(text, &d)
	return d
}

// manifest keeps a manifest, with a tag unless it is empty.
func (r *server) manifest(repository, tag, mediaType string, manifest any) ocispec.Descriptor {
	text, _ := json.Marshal(manifest)
	d := descriptor(mediaType, text)
	r.types[d.Digest.String()] = mediaType
	r.manifests[repository+" "+d.Digest.String()] = text
	if tag != "" {
		r.tags[repository] = append(r.tags[repository], tag)
		r.manifests[repository+" "+tag] = text
	}
	return d
}

// chart keeps a chart, and returns the descriptor of its manifest.
func (r *server) chart(repository, tag, config, layer string, data []byte) ocispec.Descriptor {
	return r.manifest(repository, tag, ocispec.MediaTypeImageManifest, map[string]any{
		"schemaVersion": 2, "mediaType": ocispec.MediaTypeImageManifest, "config": r.blob(config, []byte(`{"name":"shop"}`)),
		"layers": []any{r.blob(layer, data)},
	})
}

// ServeHTTP implements http.Handler.
func (r *server) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if user, password, _ := request.BasicAuth(); r.guarded && (user != "user" || password != "secret") {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED"}]}`, http.StatusUnauthorized)
		return
	}
	rest := strings.TrimPrefix(request.URL.Path, "/v2/")
	switch {
	case strings.HasSuffix(rest, "/tags/list"):
		name := strings.TrimSuffix(rest, "/tags/list")
		if r.tags[name] == nil {
			http.Error(w, `{"errors":[{"code":"NAME_UNKNOWN"}]}`, http.StatusNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"name": name, "tags": r.tags[name]})
	case strings.Contains(rest, "/manifests/"):
		name, reference, _ := strings.Cut(rest, "/manifests/")
		text, ok := r.manifests[name+" "+reference]
		if !ok {
			http.Error(w, `{"errors":[{"code":"MANIFEST_UNKNOWN"}]}`, http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", r.types[digestOf(text)])
		w.Header().Set("Docker-Content-Digest", digestOf(text))
		_, _ = w.Write(text)
	default:
		_, digest, _ := strings.Cut(rest, "/blobs/")
		data, ok := r.blobs[digest]
		switch {
		case !ok:
			http.NotFound(w, request)
		case digest == r.broken:
			w.Header().Set("Content-Length", fmt.Sprint(len(data)))
			_, _ = w.Write(data[:len(data)/2])
			panic(http.ErrAbortHandler)
		case digest == r.moved && request.URL.RawQuery == "":
			http.Redirect(w, request, request.URL.Path+"?signature=secret", http.StatusTemporaryRedirect)
		case digest == r.moved:
			w.WriteHeader(http.StatusForbidden)
		case digest == r.forged:
			_, _ = w.Write(bytes.Repeat([]byte("x"), len(data)))
		default:
			_, _ = w.Write(data)
		}
	}
}

// packed returns what looks like a packed chart.
func packed(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	check.Must(zipped.Write([]byte(text)))(t)
	check.NoError(t, zipped.Close())
	return out.Bytes()
}

func TestChartsOfARegistry(t *testing.T) {
	r := newRegistry(t)
	host := strings.TrimPrefix(r.URL, "http://")
	one, two, plus, former := packed(t, "1.2.0"), packed(t, "1.10.0"), packed(t, "2.0.0-rc.1+a"), packed(t, "former")
	first := r.chart("charts/shop", "1.2.0", configType, chartType, one)
	r.chart("charts/shop", "1.10.0", configType, chartType, two)
	r.chart("charts/shop", "2.0.0-rc.1_a", configType, chartType, plus)
	r.chart("charts/shop", "latest", configType, chartType, packed(t, "latest"))
	r.chart("charts/former", "1.0.0", configType, formerChartType, former)
	indexed := r.chart("charts/index", "", configType, chartType, one)
	image := r.chart("charts/index", "", ocispec.MediaTypeImageConfig, ocispec.MediaTypeImageLayerGzip, packed(t, "image"))
	r.manifest("charts/index", "1.0.0", ocispec.MediaTypeImageIndex, map[string]any{
		"schemaVersion": 2, "mediaType": ocispec.MediaTypeImageIndex, "manifests": []any{image, indexed},
	})
	for name, test := range map[string]struct {
		source, origin string
		data           []byte
	}{
		"the newest release":      {"charts/shop", "charts/shop:1.10.0", two},
		"a version":               {"charts/shop:1.2.0", "charts/shop:1.2.0", one},
		"a version with a plus":   {"charts/shop:2.0.0-rc.1+a", "charts/shop:2.0.0-rc.1+a", plus},
		"a digest":                {"charts/shop@" + first.Digest.String(), "charts/shop", one},
		"a version and a digest":  {"charts/shop:1.2.0@" + first.Digest.String(), "charts/shop:1.2.0", one},
		"the type of early Helm":  {"charts/former", "charts/former:1.0.0", former},
		"an index with the chart": {"charts/index:1.0.0", "charts/index:1.0.0", one},
	} {
		t.Run(name, func(t *testing.T) {
			chart := check.Must(Client{PlainHTTP: true}.Fetch(t.Context(), "oci://"+host+"/"+test.source))(t)
			if chart.Origin != "oci://"+host+"/"+test.origin || !bytes.Equal(chart.Data, test.data) {
				t.Errorf("got %s with %q", chart.Origin, chart.Data)
			}
			// The digest leads to the same chart.
			again, err := Client{PlainHTTP: true}.Fetch(t.Context(), "oci://"+host+"/"+strings.Split(test.source, "@")[0]+"@"+chart.Digest)
			if err != nil || !bytes.Equal(again.Data, test.data) {
				t.Errorf("with the digest %s: %v", chart.Digest, err)
			}
		})
	}
}

func TestTheCredentialsOfHelmAndDocker(t *testing.T) {
	for _, test := range []struct{ name, variable, file string }{
		{"helm registry login", "HELM_REGISTRY_CONFIG", "config.json"},
		{"docker login", "DOCKER_CONFIG", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRegistry(t)
			host := strings.TrimPrefix(r.URL, "http://")
			r.chart("charts/shop", "1.0.0", configType, chartType, packed(t, "x"))
			r.guarded = true
			folder := t.TempDir()
			text := fmt.Sprintf(`{"auths": {%q: {"auth": "dXNlcjpzZWNyZXQ="}}}`, host)
			check.NoError(t, os.WriteFile(filepath.Join(folder, "config.json"), []byte(text), 0o600))
			t.Setenv(test.variable, filepath.Join(folder, test.file))
			if _, err := (Client{PlainHTTP: true}).Fetch(t.Context(), "oci://"+host+"/charts/shop"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWhatCannotBeFetchedIsExplained(t *testing.T) {
	r := newRegistry(t)
	host := strings.TrimPrefix(r.URL, "http://")
	r.chart("charts/shop", "1.2.0", configType, chartType, packed(t, "x"))
	r.chart("charts/early", "0.1.0-rc.1", configType, chartType, packed(t, "x"))
	r.chart("charts/text", "1.0.0", configType, chartType, []byte("text"))
	r.chart("charts/image", "1.0.0", ocispec.MediaTypeImageConfig, ocispec.MediaTypeImageLayerGzip, packed(t, "x"))
	r.chart("charts/empty", "1.0.0", configType, "text/plain", packed(t, "x"))
	broken, forged, moved := packed(t, "broken"), packed(t, "forged"), packed(t, "moved")
	r.chart("charts/broken", "1.0.0", configType, chartType, broken)
	r.chart("charts/forged", "1.0.0", configType, chartType, forged)
	r.chart("charts/moved", "1.0.0", configType, chartType, moved)
	r.broken, r.forged, r.moved = digestOf(broken), digestOf(forged), digestOf(moved)
	huge := ocispec.Descriptor{MediaType: chartType, Digest: descriptor("", nil).Digest, Size: maxChart + 1}
	r.manifest("charts/huge", "1.0.0", ocispec.MediaTypeImageManifest, map[string]any{
		"schemaVersion": 2, "mediaType": ocispec.MediaTypeImageManifest, "config": r.blob(configType, []byte("{}")), "layers": []any{huge},
	})
	guarded := newRegistry(t)
	guarded.guarded = true
	gone := httptest.NewServer(r)
	gone.Close()
	dropping := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(dropping.Close)
	at := func(s *httptest.Server, rest string) string {
		return "oci://" + strings.TrimPrefix(s.URL, "http://") + "/" + rest
	}
	for name, test := range map[string]struct {
		source, want string
		tls          bool
	}{
		"a missing version":          {source: "oci://" + host + "/charts/shop:1.3.0", want: "the registry has no 1.3.0 of it, but 1.2.0"},
		"a missing digest":           {source: "oci://" + host + "/charts/shop@" + digestOf(nil), want: "the registry has no sha256:"},
		"a version without a digest": {source: "oci://" + host + "/charts/shop:1.2.0@" + digestOf(nil), want: "the registry has no sha256:"},
		"a missing chart":            {source: "oci://" + host + "/charts/none", want: "the registry has no such chart"},
		"pre-releases only":          {source: "oci://" + host + "/charts/early", want: "no release of it, but 0.1.0-rc.1: name a version"},
		"an image":                   {source: "oci://" + host + "/charts/image", want: "not a Helm chart, but an artifact of the type application/vnd.oci.image.config"},
		"a chart without content":    {source: "oci://" + host + "/charts/empty", want: "its manifest has no chart"},
		"a text":                     {source: "oci://" + host + "/charts/text", want: "it is not a packed Helm chart"},
		"too much":                   {source: "oci://" + host + "/charts/huge", want: "it is larger than 100 MiB"},
		"a transfer that breaks off": {source: "oci://" + host + "/charts/broken", want: "the server has broken off: repeat the command"},
		"another content":            {source: "oci://" + host + "/charts/forged", want: "something else than its manifest says"},
		"a signed address":           {source: "oci://" + host + "/charts/moved", want: "the registry refuses access"},
		"no answer":                  {source: at(dropping, "shop"), want: "the server has broken off"},
		"no user":                    {source: at(guarded.Server, "charts/shop"), want: "log in by helm registry login " + strings.TrimPrefix(guarded.URL, "http://")},
		"no server":                  {source: at(gone, "shop"), want: "the server cannot be reached: check the address and the network"},
		"no TLS":                     {source: "oci://" + host + "/charts/shop", want: "add --plain-http", tls: true},
		"no reference":               {source: "oci://" + host, want: "the address is not oci://REGISTRY/PATH"},
		"a password":                 {source: "oci://ann:secret@" + host + "/charts/shop", want: "must not hold a user or a password"},
		"a file that is missing":     {source: r.URL + "/shop.tgz?token=secret", want: "the server answers 404 Not Found"},
		"a server without TLS":       {source: r.URL + "/shop.tgz", want: "use https", tls: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Client{PlainHTTP: !test.tls}.Fetch(t.Context(), test.source)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("it is more than one line: %v", err)
			}
		})
	}
	t.Run("an interruption", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		check.Fails(t, check.ErrorOf((Client{PlainHTTP: true}).Fetch(ctx, "oci://"+host+"/charts/shop")), "context canceled")
	})
}

// silent is a server that takes a request and does not answer it.
type silent struct{}

func (silent) RoundTrip(request *http.Request) (*http.Response, error) {
	<-request.Context().Done()
	return nil, request.Context().Err()
}

func TestAServerThatDoesNotAnswer(t *testing.T) {
	newRegistry(t) // no credentials of the user
	const want = "it takes longer than 5m0s: check the address and the network, or repeat the command"
	for name, fetch := range map[string]func(context.Context, Client) error{
		"a registry": func(ctx context.Context, c Client) error {
			return check.ErrorOf(c.Fetch(ctx, "oci://example.com/shop"))
		},
		"a web server": func(ctx context.Context, c Client) error {
			return check.ErrorOf(c.Fetch(ctx, "https://example.com/shop.tgz"))
		},
		"a repository": func(ctx context.Context, c Client) error {
			return check.ErrorOf((&Repositories{Client: c}).FetchVersion(ctx, "https://example.com", "shop", "*"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { check.Fails(t, fetch(t.Context(), Client{Transport: silent{}}), want) })
		})
	}
}

func TestAChartOfAWebServer(t *testing.T) {
	data := packed(t, "shop")
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/shop-1.2.0.tgz" {
			_, _ = w.Write(data)
			return
		}
		_, _ = w.Write([]byte("<html>"))
	}))
	defer web.Close()
	client := Client{Transport: web.Client().Transport}
	chart := check.Must(client.Fetch(t.Context(), web.URL+"/shop-1.2.0.tgz?token=secret"))(t)
	check.Equal(t, Chart{Origin: web.URL + "/shop-1.2.0.tgz", Digest: digestOf(data), Data: data}, chart)
	check.Fails(t, check.ErrorOf(client.Fetch(t.Context(), web.URL+"/index.html")), "it is not a packed Helm chart")
}

func TestARedirectLeaksNothing(t *testing.T) {
	var leaked []string
	other := newRegistry(t)
	handler := http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		for _, name := range []string{"Authorization", "Cookie", "Referer"} {
			if value := request.Header.Get(name); value != "" {
				leaked = append(leaked, name+": "+value)
			}
		}
		other.ServeHTTP(w, request)
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	data := packed(t, "x")
	other.blob(chartType, data)
	blob := "/v2/charts/shop/blobs/" + digestOf(data)

	// A registry keeps its blobs on another server.
	r := newRegistry(t)
	r.guarded = true
	r.chart("charts/shop", "1.0.0", configType, chartType, data)
	moved := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if _, _, authorized := request.BasicAuth(); authorized && strings.Contains(request.URL.Path, "/blobs/") {
			http.Redirect(w, request, plain.URL+request.URL.Path, http.StatusTemporaryRedirect)
			return
		}
		r.ServeHTTP(w, request)
	}))
	t.Cleanup(moved.Close)
	host, folder := strings.TrimPrefix(moved.URL, "http://"), t.TempDir()
	check.NoError(t, os.WriteFile(filepath.Join(folder, "config.json"), fmt.Appendf(nil, `{"auths": {%q: {"auth": "dXNlcjpzZWNyZXQ="}}}`, host), 0o600))
	t.Setenv("DOCKER_CONFIG", folder)
	if chart, err := (Client{PlainHTTP: true}).Fetch(t.Context(), "oci://"+host+"/charts/shop"); err != nil || !bytes.Equal(chart.Data, data) {
		t.Errorf("from another server: %v", err)
	}

	for to, want := range map[string]string{secure.URL: "", plain.URL: "which has no TLS", "": "redirects more than 10 times"} {
		web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			http.Redirect(w, request, to+blob, http.StatusFound)
		}))
		t.Cleanup(web.Close)
		_, err := Client{PlainHTTP: true, Transport: web.Client().Transport}.Fetch(t.Context(), web.URL+"/shop.tgz?token=secret")
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("to %s: got %v, want %q", to, err, want)
		}
	}
	if len(leaked) > 0 {
		t.Errorf("the other server got %q", leaked)
	}
}

func TestWhatIsRemote(t *testing.T) {
	for source, want := range map[string]bool{
		"oci://registry.example.com/shop": true, "https://example.com/shop.tgz": true, "http://example.com/shop.tgz": true,
		"./shop": false, "shop-1.2.0.tgz": false, "": false, "oci:/shop": false,
	} {
		check.SameNamed(t, source, want, IsRemote(source))
	}
}
