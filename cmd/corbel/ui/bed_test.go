// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/env"
)

const (
	operatorName      = "shop.example.com"
	operatorNamespace = "shop-system"
	market            = "market" // the namespace of the shops
	patience          = 2 * time.Minute
	canary            = "a very secret canary" // the value of all Secrets
	aboutCorner       = "?type=shops.shop.example.com&namespace=market&name=corner"
)

// bed is a cluster with an operator in this process.
type bed struct {
	testing.TB
	env    *env.Environment
	ctx    context.Context
	client client.Client
}

// openBed starts an operator; the end of the test ends it.
func openBed(t testing.TB, e *env.Environment) *bed {
	t.Helper()
	b := install(t, e)
	b.startOperator()
	return b
}

// install installs the type of the shops.
func install(t testing.TB, e *env.Environment) *bed {
	t.Helper()
	b := &bed{TB: t, env: e, ctx: context.WithoutCancel(t.Context())}
	scheme := runtime.NewScheme()
	b.check(errors.Join(clientgoscheme.AddToScheme(scheme), shopv1alpha1.SchemeBuilder.AddToScheme(scheme)))
	var err error
	b.client, err = client.New(b.env.Config(), client.Options{Scheme: scheme})
	b.check(err)
	_, err = envtest.InstallCRDs(b.env.Config(), envtest.CRDInstallOptions{Paths: []string{"../../../examples/shop/config/crd"}})
	b.check(err)
	for _, namespace := range []string{market, operatorNamespace} {
		b.check(client.IgnoreAlreadyExists(b.client.Create(b.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})))
	}
	return b
}

func (b *bed) startOperator() {
	b.Helper()
	manager, err := ctrl.NewManager(b.env.Config(), ctrl.Options{
		Scheme: b.client.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	b.check(err)
	generator, err := helm.New(os.DirFS("../../../examples/shop"), "chart", helm.Options{})
	b.check(err)
	shops := component.NewReconciler[*shopv1alpha1.Shop](operatorName, manifests.Join(generator, keys{}), component.ReconcilerOptions{Operator: component.OperatorOptions{OperatorNamespace: new(operatorNamespace)}})
	b.check(shops.SetupWithManager(manager))
	ctx, cancel := context.WithCancel(b.ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Errorf("the operator ended: %v", err)
		}
	})
}

// keys generates a Secret with a value that changes with the spec.
type keys struct{}

func (keys) Generate(_ context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
	discount := fmt.Sprint(parameters.ToUnstructured()["discount"])
	return []client.Object{&corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-keys"}, Data: map[string][]byte{"key": []byte(canary + discount)},
	}}, nil
}

func (b *bed) check(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bed) until(what string, check func() error) {
	b.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("waited in vain until %s: %v", what, err)
		}
	}
}

func shop(name string) *shopv1alpha1.Shop {
	return &shopv1alpha1.Shop{
		ObjectMeta: metav1.ObjectMeta{Namespace: market, Name: name},
		Spec: shopv1alpha1.ShopSpec{ShopValues: shopv1alpha1.ShopValues{
			Replicas: 2, Image: "registry.example.com/shop:1.0", Greeting: "Welcome", DatabaseSecret: name + "-database",
			Discount: 10, Cache: shopv1alpha1.CacheValues{Enabled: true},
		}},
	}
}

// createShop creates a Shop with a Secret, and waits until it is Ready.
func (b *bed) createShop(name string) {
	b.Helper()
	b.check(b.client.Create(b.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: market, Name: name + "-database"}, StringData: map[string]string{"password": canary}}))
	b.check(b.client.Create(b.ctx, shop(name)))
	b.untilReady(name, 1)
}

func (b *bed) untilReady(name string, revision int64) {
	b.Helper()
	b.until(fmt.Sprintf("Shop %s is Ready with revision %d", name, revision), func() error {
		s := shop(name)
		if err := b.client.Get(b.ctx, client.ObjectKeyFromObject(s), s); err != nil {
			return err
		}
		state, reason, message := s.Status.GetState()
		if s.Status.IsReady() && s.Status.ObservedGeneration == s.Generation && s.Status.Revision == revision {
			conditionstest.Check(b, conditions.For(s, &s.Status.Conditions))
			return nil
		}
		return fmt.Errorf("it is %s (%s: %s), revision %d", state, reason, message, s.Status.Revision)
	})
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
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	options.Address, options.Token = listener.Addr().String(), token
	s, err := New(config, options)
	if err != nil {
		t.Fatal(err)
	}
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
	r, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	r.Header.Set(tokenHeader, token)
	if method == http.MethodPost {
		r.Header.Set("X-Corbel", "1")
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := p.client.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		p.Fatal(err)
	}
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
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"api/stream"+path, nil)
	if err != nil {
		p.Fatal(err)
	}
	query := r.URL.Query()
	query.Set("token", token)
	r.URL.RawQuery = query.Encode()
	response, err := p.client.Do(r)
	if err != nil {
		p.Fatal(err)
	}
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
