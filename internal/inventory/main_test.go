// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/wire"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{})) }

const (
	reconcilerName = "inventory.corbel.run"
	// threshold makes seven items too many for the status.
	threshold = 1000
)

// fixture is a component with an inventory. A ConfigMap stands for the component: like
// a status it is written with the resourceVersion as precondition.
type fixture struct {
	*testing.T
	client    client.Client // of an observer
	component Component
	key       client.ObjectKey
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	d := &fixture{T: t}
	d.client = d.clientVia(nil)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "inventory-"}}
	check.NoError(d, d.client.Create(t.Context(), namespace))
	d.key = client.ObjectKey{Namespace: namespace.Name, Name: "main"}
	component := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: d.key.Namespace, Name: d.key.Name}}
	check.NoError(d, d.client.Create(t.Context(), component))
	d.component = Component{APIVersion: "v1", Kind: "ConfigMap", Namespace: d.key.Namespace, Name: d.key.Name, UID: component.UID}
	return d
}

// clientVia returns a client with requests that go through a wrapper.
func (d *fixture) clientVia(wrap func(http.RoundTripper) http.RoundTripper) client.Client {
	d.Helper()
	config := rest.CopyConfig(env.Shared(d.T).Config())
	config.QPS = -1
	if wrap != nil {
		config.Wrap(wrap)
	}
	c := check.Must(client.New(config, client.Options{Scheme: clientgoscheme.Scheme}))(d)
	return c
}

// process is a process that works on the inventory.
type process struct {
	*fixture
	client client.Client
	store  *Store
	// version is the resourceVersion of the component as the process read it.
	version  string
	snapshot *Snapshot
	commits  int
}

func (d *fixture) process(wrap func(http.RoundTripper) http.RoundTripper) *process {
	d.Helper()
	c := d.clientVia(wrap)
	return &process{fixture: d, client: c, store: NewStore(Options{Client: c, Name: reconcilerName, FieldOwner: reconcilerName, Namespace: "default", Threshold: threshold})}
}

// stored reads the component.
func (c *process) stored(ctx context.Context) (stored v1alpha1.Inventory, err error) {
	component := &corev1.ConfigMap{}
	if err := c.client.Get(ctx, c.key, component); err != nil {
		return stored, err
	}
	c.version = component.ResourceVersion
	if text := component.Data["inventory"]; text != "" {
		err = json.Unmarshal([]byte(text), &stored)
	}
	return stored, err
}

func (c *process) commit(ctx context.Context, stored v1alpha1.Inventory) error {
	c.commits++
	text, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	component := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.key.Namespace, Name: c.key.Name, ResourceVersion: c.version},
		Data:       map[string]string{"inventory": string(text)},
	}
	if err := c.client.Update(ctx, component); err != nil {
		return err
	}
	c.version = component.ResourceVersion
	return nil
}

func (c *process) open(ctx context.Context) error {
	stored, err := c.stored(ctx)
	if err != nil {
		return err
	}
	if c.snapshot, err = c.store.Open(ctx, c.component, stored); err != nil {
		return err
	}
	return c.snapshot.CollectGarbage(ctx, c.commit)
}

// reconcile opens the inventory and makes another one durable.
func (c *process) reconcile(ctx context.Context, items []v1alpha1.InventoryItem) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	return c.snapshot.Save(ctx, inventoryOf(items), c.commit)
}

func inventoryOf(items []v1alpha1.InventoryItem) v1alpha1.Inventory {
	if len(items) == 0 {
		return v1alpha1.Inventory{}
	}
	return v1alpha1.Inventory{Format: v1alpha1.InventoryFormat, Target: "cluster", Items: items}
}

// expect compares the inventory with one of several.
func (c *process) expect(possible ...[]v1alpha1.InventoryItem) {
	c.Helper()
	check.NoError(c, c.open(c.Context()))
	if losses := c.snapshot.Losses(); len(losses) > 0 {
		c.Fatalf("losses: %v", losses)
	}
	var diff string
	for _, items := range possible {
		if diff = cmp.Diff(inventoryOf(items), c.snapshot.Inventory()); diff == "" {
			return
		}
	}
	c.Fatalf("the inventory is not what it was and not what it was to be (-want +got):\n%s", diff)
}

// secrets returns all Secrets of the namespace.
func (d *fixture) secrets() []corev1.Secret {
	d.Helper()
	list := &corev1.SecretList{}
	check.NoError(d, d.client.List(d.Context(), list, client.InNamespace(d.key.Namespace)))
	return list.Items
}

// items makes numbered items; those with a number in changed differ.
func items(from, to int, changed ...int) []v1alpha1.InventoryItem {
	list := make([]v1alpha1.InventoryItem, 0, to-from)
	for i := from; i < to; i++ {
		item := v1alpha1.InventoryItem{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: fmt.Sprintf("config-%03d", i), UID: types.UID(fmt.Sprintf("uid-%03d", i)), Digest: "digest"}
		for _, n := range changed {
			if n == i {
				item.Digest = "changed"
			}
		}
		list = append(list, item)
	}
	return list
}

var reasons = map[int]string{http.StatusForbidden: "Forbidden", http.StatusTooManyRequests: "TooManyRequests"}

// refuser is in front of a server, counts the requests for Secrets, and refuses those of a method: patches, if it is empty.
type refuser struct {
	method            string
	requests, refused atomic.Int64

	mu    sync.Mutex
	codes map[string]int
}

// refuse answers requests for the Secret of that name with the code, or for any Secret if
// it is empty; 0 lets them through.
func (f *refuser) refuse(code int, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.codes == nil {
		f.codes = map[string]int{}
	}
	f.codes[name] = code
}

func (f *refuser) codeFor(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(f.codes[name], f.codes[""])
}

func (f *refuser) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if !strings.Contains(r.URL.Path, "/secrets") {
			return next.RoundTrip(r)
		}
		f.requests.Add(1)
		code := f.codeFor(path.Base(r.URL.Path))
		if matches := r.Method == f.method || f.method == "" && r.Method == http.MethodPatch; code == 0 || !matches {
			return next.RoundTrip(r)
		}
		f.refused.Add(1)
		body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"not you, or not now","code":%d}`, reasons[code], code)
		return &http.Response{
			StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
		}, nil
	})
}
