// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/wire"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(env.Main(m, env.Options{}))
}

const engineName = "engine.corbel.run"

// bench is an engine, a namespace to work in, and the record that it keeps.
type bench struct {
	client.Client
	t         *testing.T
	engine    *reconciler.Reconciler
	traffic   *traffic // of the engine; nil if the requests go to a recorder
	namespace string
	name      string // of the owner; empty means main
	inventory v1alpha1.Inventory
	// confidential, stored and managed are those of the requests.
	confidential, stored bool
	managed              []v1alpha1.TypeInfo
	records              int // how often the record was made durable
}

func newTarget(t *testing.T) cluster.Target {
	t.Helper()
	target := check.Must(cluster.New(env.Shared(t).Config(), cluster.Options{}))(t)
	t.Cleanup(target.Close)
	return target
}

// keyed are the options with a key for digests and seals, unless they say which.
func keyed(options reconciler.ReconcilerOptions) reconciler.ReconcilerOptions {
	if options.DigestKey == nil {
		options.DigestKey = []byte("the key of the tests")
	}
	return options
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{Client: newTarget(t).Client(), t: t}
	b.interpose(t, reconciler.ReconcilerOptions{})
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "engine-"}}
	check.NoError(t, b.Create(t.Context(), namespace))
	b.namespace = namespace.Name
	return b
}

func (b *bench) owner() reconciler.Owner {
	return reconciler.Owner{Group: "example.com", Kind: "Release", Namespace: b.namespace, Name: cmp.Or(b.name, "main"), UID: "1"}
}

func (b *bench) record(_ context.Context, inventory v1alpha1.Inventory) error {
	b.records++
	b.inventory = inventory
	return nil
}

func (b *bench) request(objects ...client.Object) reconciler.ApplyRequest {
	return reconciler.ApplyRequest{
		Owner: b.owner(), Namespace: b.namespace, Objects: objects, Inventory: b.inventory, Record: b.record,
		Confidential: b.confidential, Stored: b.stored, ManagedTypes: b.managed,
	}
}

// apply applies once and keeps the record.
func (b *bench) apply(objects ...client.Object) (reconciler.Outcome, error) {
	b.t.Helper()
	outcome, err := b.engine.Apply(b.t.Context(), b.request(objects...))
	b.inventory = outcome.Inventory
	return outcome, err
}

// mustApply expects everything to be done at once.
func (b *bench) mustApply(objects ...client.Object) reconciler.Outcome {
	b.t.Helper()
	outcome, err := b.apply(objects...)
	if err != nil || !outcome.Done() {
		b.t.Fatalf("apply: %v, waiting for %v", err, outcome.Waiting)
	}
	return outcome
}

func (b *bench) delete() (reconciler.Outcome, error) {
	b.t.Helper()
	outcome, err := b.engine.Delete(b.t.Context(), reconciler.DeleteRequest{
		Owner: b.owner(), Inventory: b.inventory, Record: b.record,
	})
	b.inventory = outcome.Inventory
	return outcome, err
}

// mustDelete expects everything to be deleted at once.
func (b *bench) mustDelete() reconciler.Outcome {
	b.t.Helper()
	outcome, err := b.delete()
	if err != nil || !outcome.Done() {
		b.t.Fatalf("delete: %v, waiting for %v", err, outcome.Waiting)
	}
	return outcome
}

// get reads a ConfigMap of the bench's namespace; nil if there is none.
func (b *bench) get(name string) *corev1.ConfigMap {
	b.t.Helper()
	config := &corev1.ConfigMap{}
	err := b.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, config)
	if client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return config
}

// config is the manifest of a ConfigMap; annotations come in pairs, without the prefix.
func config(name, value string, annotations ...string) *unstructured.Unstructured {
	metadata := map[string]any{"name": name}
	if len(annotations) > 0 {
		set := map[string]any{}
		for i := 0; i < len(annotations); i += 2 {
			set[engineName+"/"+annotations[i]] = annotations[i+1]
		}
		metadata["annotations"] = set
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": map[string]any{"value": value},
	}}
}

// change changes a ConfigMap by hand.
func (b *bench) change(name string, change func(*corev1.ConfigMap)) {
	b.t.Helper()
	live := b.get(name)
	change(live)
	check.NoError(b.t, b.Update(b.t.Context(), live))
}

// traffic keeps the requests of an engine, those that were no dry runs, and those of them that the server accepted, as method and
// path; a POST with the name of the object. A PATCH that creates an object counts as an accepted POST. A test can do something right
// before a request is sent: what happens between two requests happens there in the same way every time.
type traffic struct {
	lock             sync.Mutex
	all              []string
	stored, accepted []string
	hook             func(request string)
	busy             atomic.Bool
	// dead lets no request through any more: for the server, we have crashed.
	dead atomic.Bool
}

func (c *traffic) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		body := ""
		if r.GetBody != nil {
			if reader, err := r.GetBody(); err == nil {
				content, _ := io.ReadAll(reader)
				body = string(content)
			}
		}
		dry := r.URL.Query().Get("dryRun") == "All" || r.Method == http.MethodDelete && strings.Contains(body, `"dryRun":["All"]`)
		name := r.Method + " " + r.URL.Path
		if r.Method == http.MethodPost {
			var object metav1.PartialObjectMetadata
			_ = json.Unmarshal([]byte(body), &object)
			name += "/" + object.Name
		}
		c.lock.Lock()
		c.all = append(c.all, name)
		hook := c.hook
		c.lock.Unlock()
		if hook != nil && c.busy.CompareAndSwap(false, true) {
			hook(name)
			c.busy.Store(false)
		}
		if c.dead.Load() {
			return nil, errors.New("we have crashed")
		}
		answer, err := next.RoundTrip(r)
		if r.Method == http.MethodGet || dry {
			return answer, err
		}
		c.lock.Lock()
		defer c.lock.Unlock()
		c.stored = append(c.stored, name)
		if err == nil && answer.StatusCode == http.StatusCreated {
			name = strings.Replace(name, http.MethodPatch, http.MethodPost, 1)
		}
		if err == nil && answer.StatusCode < http.StatusMultipleChoices {
			c.accepted = append(c.accepted, name)
		}
		return answer, err
	})
}

// before calls the function once, before the first request that starts with the
// text, and reports whether that has happened.
func (c *traffic) before(prefix string, call func()) (happened func() bool) {
	var done atomic.Bool
	c.lock.Lock()
	defer c.lock.Unlock()
	c.hook = func(request string) {
		if strings.HasPrefix(request, prefix) && done.CompareAndSwap(false, true) {
			call()
		}
	}
	return done.Load
}

// requests returns what was sent since the last call and starts with the text.
func (c *traffic) requests(prefix string) (matching []string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, request := range c.all {
		if strings.HasPrefix(request, prefix) {
			matching = append(matching, request)
		}
	}
	c.all, c.stored, c.accepted = nil, nil, nil
	return matching
}

// interpose gives the bench an engine with the options, which sends its requests by a new traffic.
func (b *bench) interpose(t *testing.T, options reconciler.ReconcilerOptions, change ...func(*rest.Config)) {
	t.Helper()
	b.traffic = &traffic{}
	config := rest.CopyConfig(env.Shared(t).Config())
	for _, change := range change {
		change(config)
	}
	config.Wrap(b.traffic.wrap)
	target := check.Must(cluster.New(config, cluster.Options{}))(t)
	t.Cleanup(target.Close)
	b.engine = check.Must(reconciler.NewReconciler(engineName, reconciler.Target{Target: target}, keyed(options)))(t)
	t.Cleanup(b.engine.Close)
}
