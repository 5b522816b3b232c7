// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests"
	corbeltypes "github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/wire"
)

// TestRequestsOfAFleet counts the requests of an operator with many components of four objects, one of which
// is a Deployment that its controller rolls out. The numbers are exact promises for each component, but for what an
// operator asks once, and for conflicts with the controller. With the history each revision takes one request more.
func TestRequestsOfAFleet(t *testing.T) {
	const n, once = 40, 25
	f := newFixture(t)
	traffic := &fleetTraffic{}
	var renderings atomic.Int64
	chart := "1"
	expect := func(what string, requests, writes, events, rendered int) {
		t.Helper()
		got, render := traffic.drain(), int(renderings.Swap(0))
		t.Logf("%s: %.2f requests, %.2f events, %.2f renderings a component: %s",
			what, float64(got.requests)/n, float64(got.events)/n, float64(render)/n, got.text(n))
		const slack = n / 4 // conflicts with the controller, on a slow machine
		if got.requests > requests*n+once+slack || got.writes > writes*n+slack+5 || got.events > events*n+slack || render > rendered*n+slack {
			t.Errorf("%s: %d requests, %d writes, %d events and %d renderings; want %d, %d, %d and %d a component",
				what, got.requests, got.writes, got.events, render, requests, writes, events, rendered)
		}
	}
	start := func() *operator { return f.startWith(t, podinfo(chart, &renderings), traffic.wrap) }
	create := func() []*Bundle {
		fleet := make([]*Bundle, 0, n)
		for i := range n {
			bundle := &Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: fmt.Sprintf("app-%d", i)}}
			if err := f.Create(t.Context(), bundle); err != nil {
				t.Fatal(err)
			}
			fleet = append(fleet, bundle)
		}
		return fleet
	}
	remove := func(fleet []*Bundle) {
		for _, bundle := range fleet {
			if err := f.Delete(t.Context(), bundle); err != nil {
				t.Fatal(err)
			}
		}
		for _, bundle := range fleet {
			f.gone(t, bundle)
		}
	}

	fleet := create()
	o := start()
	f.allReady(t, fleet, "1")
	expect("install", 9, 8, 2, 1) // read, finalizer, record, four objects, history, result

	for _, bundle := range fleet {
		f.update(t, bundle, map[string]string{"cpu": "2m"})
	}
	f.allReady(t, fleet, "1")
	expect("upgrade", 4, 3, 2, 1) // read, Deployment, history, result

	remove(fleet)
	expect("delete", 12, 6, 2, 0) // read, four objects, history, a last look at each, because another process might have created it, finalizer, read

	fleet = create()
	f.allReady(t, fleet, "1")
	o.stop(t)
	traffic.drain()
	renderings.Store(0)
	o = start()
	f.judged(t, fleet, &renderings)
	o.stop(t)
	expect("restart", 1, 0, 0, 1) // read

	chart = "2"
	start()
	f.allReady(t, fleet, "2")
	expect("another chart", 8, 6, 2, 1) // read, four objects, history (read and written), result

	remove(fleet)
	expect("delete after a restart", 12, 6, 2, 0) // history, and a last look at each object
}

// judged waits until all components of a fleet were reconciled once.
func (f *fixture) judged(t testing.TB, fleet []*Bundle, renderings *atomic.Int64) {
	t.Helper()
	eventually(t, "all components to be reconciled", func(context.Context) error {
		if got := renderings.Load(); got < int64(len(fleet)) {
			return fmt.Errorf("%d renderings", got)
		}
		return nil
	})
}

// allReady waits until all components of a fleet are ready with objects of a chart.
func (f *fixture) allReady(t testing.TB, fleet []*Bundle, chart string) {
	t.Helper()
	for _, bundle := range fleet {
		eventually(t, bundle.Name+" to be ready with chart "+chart, func(ctx context.Context) error {
			if err := f.Get(ctx, client.ObjectKeyFromObject(bundle), bundle); err != nil {
				return err
			}
			live := &unstructured.Unstructured{}
			live.SetAPIVersion("apps/v1")
			live.SetKind("Deployment")
			if err := f.Get(ctx, client.ObjectKeyFromObject(bundle), live); err != nil {
				return err
			}
			if state, _, message := bundle.Status.GetState(); !bundle.Status.IsReady() || bundle.Status.ObservedGeneration != bundle.Generation || live.GetLabels()["chart"] != chart {
				return fmt.Errorf("%s: %s; chart %s", state, message, live.GetLabels()["chart"])
			}
			return nil
		})
	}
}

// podinfo generates four objects, as the charts of small services do.
func podinfo(chart string, renderings *atomic.Int64) manifests.Generator {
	return manifests.GeneratorFunc(func(_ context.Context, _, name string, parameters corbeltypes.Unstructurable) ([]client.Object, error) {
		renderings.Add(1)
		cpu, _ := parameters.ToUnstructured()["cpu"].(string)
		if cpu == "" {
			cpu = "1m"
		}
		labels := map[string]any{"app": name}
		object := func(apiVersion, kind string, content map[string]any) client.Object {
			object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
			maps.Copy(object.Object, content)
			object.SetName(name)
			object.SetLabels(map[string]string{"app": name, "chart": chart})
			return object
		}
		port := map[string]any{"name": "http", "port": int64(9898), "targetPort": "http", "protocol": "TCP"}
		container := map[string]any{
			"name": "podinfo", "image": "podinfo", "ports": []any{map[string]any{"name": "http", "containerPort": int64(9898), "protocol": "TCP"}},
			"resources": map[string]any{"requests": map[string]any{"cpu": cpu, "memory": "16Mi"}},
		}
		backend := map[string]any{"service": map[string]any{"name": name, "port": map[string]any{"name": "http"}}}
		return []client.Object{
			object("v1", "ServiceAccount", nil),
			object("v1", "Service", map[string]any{"spec": map[string]any{"type": "ClusterIP", "selector": labels, "ports": []any{port}}}),
			object("apps/v1", "Deployment", map[string]any{"spec": map[string]any{
				"replicas": int64(0), "selector": map[string]any{"matchLabels": labels},
				"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"serviceAccountName": name, "containers": []any{container}}},
			}}),
			object("networking.k8s.io/v1", "Ingress", map[string]any{"spec": map[string]any{"rules": []any{map[string]any{
				"host": name + ".example.com", "http": map[string]any{"paths": []any{map[string]any{"path": "/", "pathType": "Prefix", "backend": backend}}},
			}}}}),
		}, nil
	})
}

// fleetTraffic counts the requests of an operator by verb and resource, but for watches and leases.
type fleetTraffic struct {
	mu     sync.Mutex
	counts fleetCounts
}

// fleetCounts are numbers of requests.
type fleetCounts struct {
	requests, events, writes int
	by                       map[string]int
}

func (c fleetCounts) text(n int) string {
	parts := make([]string, 0, len(c.by))
	for _, request := range slices.Sorted(maps.Keys(c.by)) {
		parts = append(parts, fmt.Sprintf("%s %.2f", request, float64(c.by[request])/float64(n)))
	}
	return strings.Join(parts, ", ")
}

func (c *fleetTraffic) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if !isWatch(r) {
			c.mu.Lock()
			c.add(r)
			c.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

func (c *fleetTraffic) add(r *http.Request) {
	if isEvent(r) {
		c.counts.events++
		return
	}
	c.counts.requests++
	if r.Method != http.MethodGet {
		c.counts.writes++
	}
	if c.counts.by == nil {
		c.counts.by = map[string]int{}
	}
	c.counts.by[r.Method+" "+pathResource(r.URL.Path)]++
}

// pathResource returns the resource of a path, and its subresource.
func pathResource(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if i := slices.Index(parts, "namespaces"); i >= 0 && len(parts) > i+2 {
		parts = parts[i+2:]
		if len(parts) > 1 {
			return strings.Join(append(parts[:1], parts[2:]...), "/")
		}
		return "list " + parts[0]
	}
	return strings.Join(parts, "/")
}

func (c *fleetTraffic) drain() fleetCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	counted := c.counts
	c.counts = fleetCounts{}
	return counted
}
