// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/cmd/corbel/test/shops"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{Cluster: true})) }

const patience = 2 * time.Minute

// bed is a cluster with an operator in this process, and with one Shop.
type bed struct {
	testing.TB
	env    *env.Environment
	client client.Client
}

func openBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{TB: t, env: env.Shared(t)}
	c := check.Must(shops.Client(b.env))(b)
	b.client = c
	manager := check.Must(shops.Operator(t.Context(), b.env, c, "../../..", keys{}))(b)
	env.Run(t, manager)
	check.NoError(b, shops.Create(t.Context(), c, "corner"))
	return b
}

// keys generates a Secret with a value that changes with the spec.
type keys struct{}

func (keys) Generate(_ context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
	discount := fmt.Sprint(parameters.ToUnstructured()["discount"])
	return []client.Object{&corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-keys"}, Data: map[string][]byte{"key": []byte(shops.Canary + discount)},
	}}, nil
}

// untilReady waits until the Shop is Ready with a revision.
func (b *bed) untilReady(revision int64) {
	b.Helper()
	env.Until(b, fmt.Sprintf("the Shop has the revision %d", revision), func() error {
		s := shops.New("corner")
		err := b.client.Get(b.Context(), client.ObjectKeyFromObject(s), s)
		if err == nil && s.Status.Revision != revision {
			err = fmt.Errorf("it has the revision %d", s.Status.Revision)
		}
		return err
	})
	check.Must(shops.AwaitReady(b.Context(), b.client, "corner"))(b)
}

// browser asks a server as the page does.
type browser struct {
	testing.TB
	url    string
	client *http.Client
	all    strings.Builder // all that was answered
	mu     sync.Mutex
}

const token = "the token of the tests"

// serve serves a page, and opens it.
func serve(t testing.TB, config *rest.Config, options Options) *browser {
	t.Helper()
	listener := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	options.Address, options.Token = listener.Addr().String(), token
	s := check.Must(New(config, options))(t)
	server := httptest.NewUnstartedServer(s)
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(func() { server.Close(); s.Close() })
	b := &browser{TB: t, url: server.URL + "/", client: &http.Client{}}
	if status, text := b.request(http.MethodGet, "", ""); status != http.StatusOK {
		t.Fatalf("the page: %d %s", status, text)
	}
	return b
}

// request asks, and returns the status and the answer.
func (p *browser) request(method, path, body string) (int, string) {
	p.Helper()
	r := check.Must(http.NewRequest(method, p.url+path, strings.NewReader(body)))(p)
	r.Header.Set(tokenHeader, token)
	if method == http.MethodPost {
		r.Header.Set("X-Corbel", "1")
		r.Header.Set("Content-Type", "application/json")
	}
	response := check.Must(p.client.Do(r))(p)
	defer func() { _ = response.Body.Close() }()
	text := check.Must(io.ReadAll(response.Body))(p)
	p.heard(text)
	return response.StatusCode, string(text)
}

func (p *browser) heard(text []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all.Write(text)
}

// get reads an answer into a value.
func (p *browser) get(path string, into any) {
	p.Helper()
	status, text := p.request(http.MethodGet, path, "")
	if status != http.StatusOK {
		p.Fatalf("%s: %d %s", path, status, text)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		p.Fatalf("%s: %v", path, err)
	}
}

// received is an event of a stream.
type received struct {
	name string
	data string
}

// listen opens a stream. The end of the test closes it.
func (p *browser) listen(path string) <-chan received {
	p.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(p.Context()))
	r := check.Must(http.NewRequestWithContext(ctx, http.MethodGet, p.url+"api/stream"+path, nil))(p)
	query := r.URL.Query()
	query.Set("token", token)
	r.URL.RawQuery = query.Encode()
	response := check.Must(p.client.Do(r))(p)
	if response.StatusCode != http.StatusOK {
		p.Fatal(response.Status)
	}
	events, done := make(chan received, 10000), make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 10<<20)
		var e received
		for lines.Scan() {
			p.heard(lines.Bytes())
			name, value, _ := bytes.Cut(lines.Bytes(), []byte(": "))
			switch string(name) {
			case "event":
				e.name = string(value)
			case "data":
				e.data = string(value)
				events <- e
			}
		}
	}()
	p.Cleanup(func() { cancel(); _ = response.Body.Close(); <-done })
	return events
}

// await returns the next event of a name with a text; an empty name is that of any event.
func (p *browser) await(events <-chan received, name, text string) received {
	p.Helper()
	limit := time.After(patience)
	for {
		select {
		case e := <-events:
			if (name == "" || e.name == name) && strings.Contains(e.data, text) {
				return e
			}
		case <-limit:
			p.Fatalf("no event %s with %q", name, text)
		}
	}
}
