// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests"
	corbeltypes "github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/wire"
)

// TestRequests counts the requests of an operator with one component of 1000
// ConfigMaps. The numbers are exact promises, not measurements of speed.
func TestRequests(t *testing.T) {
	const n, chunks = 1000, 4 // Secrets that hold the record
	f := newFixture(t)
	traffic := &traffic{skips: isInformer}
	expect := func(what string, most counts) {
		t.Helper()
		got := traffic.drain()
		t.Logf("%s: %d reads and %d writes", what, got.reads, got.writes)
		if got.reads > most.reads || got.writes > most.writes {
			t.Errorf("%s: %s; want at most %d reads and %d writes", what, got.text(1), most.reads, most.writes)
		}
	}
	var renderings atomic.Int64
	o := f.startWith(t, configMaps(n, &renderings), traffic.wrap)

	bundle := f.bundle(t, map[string]string{"all": "1", "one": "1"})
	f.ready(t, bundle)
	expect("install", counts{reads: 20, writes: n + 4*chunks + 1}) // one reviews the rights

	f.update(t, bundle, map[string]string{"all": "1", "one": "2"})
	f.ready(t, bundle)
	expect("change of one", counts{reads: 3, writes: 4})

	f.update(t, bundle, map[string]string{"all": "1", "one": "2", "none": "1"})
	f.ready(t, bundle)
	expect("change of nothing that is rendered", counts{reads: 3, writes: 2})

	o.reconciles(t, bundle, &renderings)
	expect("at rest, one reconcile and the start of another", counts{reads: 4})

	f.update(t, bundle, map[string]string{"all": "2", "one": "2"})
	f.ready(t, bundle)
	expect("change of all", counts{reads: 5, writes: n + chunks + 3})

	edited := f.configMap(t, "config-1")
	edited.Data = map[string]string{"all": "theirs"}
	f.repaired(t, edited, f.Update(t.Context(), edited))
	expect("drift", counts{reads: 4, writes: 3})

	removed := f.configMap(t, "config-2")
	f.repaired(t, removed, f.Delete(t.Context(), removed))
	expect("a dependent is deleted by hand", counts{reads: 6, writes: 5})

	// An operator that stops before it has reported that the dependent is ready again
	// leaves that to its successor.
	o.reconciles(t, bundle, &renderings)
	o.stop(t)
	traffic.drain()
	o = f.startWith(t, configMaps(n, &renderings), traffic.wrap)
	o.reconciles(t, bundle, &renderings)
	expect("restart, and two reconciles", counts{reads: 12})

	if err := f.Delete(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	f.gone(t, bundle)
	expect("delete", counts{reads: 10, writes: n + 2*chunks + 5})
}

func (f *fixture) configMap(t testing.TB, name string) *corev1.ConfigMap {
	t.Helper()
	object := &corev1.ConfigMap{}
	if err := f.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, object); err != nil {
		t.Fatal(err)
	}
	return object
}

// repaired waits until a ConfigMap that a user has changed has its desired content.
func (f *fixture) repaired(t testing.TB, object *corev1.ConfigMap, changed error) {
	t.Helper()
	if changed != nil {
		t.Fatal(changed)
	}
	eventually(t, object.Name+" to be repaired", func(ctx context.Context) error {
		live := &corev1.ConfigMap{}
		if err := f.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
			return err
		}
		if live.Data["all"] != "2" {
			return fmt.Errorf("it holds %v", live.Data)
		}
		return nil
	})
}

// reconciles lets one whole reconcile happen, and the start of another one, which shows
// that the first has ended.
func (o *operator) reconciles(t testing.TB, bundle *Bundle, renderings *atomic.Int64) {
	t.Helper()
	for range 2 {
		before := renderings.Load()
		if err := o.reconciler.Trigger(bundle.Namespace, bundle.Name); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the next reconcile", func(context.Context) error {
			if renderings.Load() == before {
				return errors.New("the manifests are not rendered again")
			}
			return nil
		})
	}
}

// configMaps generates n ConfigMaps; one of them has a value of its own.
func configMaps(n int, renderings *atomic.Int64) manifests.Generator {
	return manifests.GeneratorFunc(func(_ context.Context, _, _ string, parameters corbeltypes.Unstructurable) ([]client.Object, error) {
		renderings.Add(1)
		objects := make([]client.Object, 0, n)
		for i := range n {
			data := map[string]string{"all": valueOf(parameters, "all")}
			if i == 0 {
				data["one"] = valueOf(parameters, "one")
			}
			objects = append(objects, &corev1.ConfigMap{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
				ObjectMeta: metav1.ObjectMeta{Name: "config-" + strconv.Itoa(i)},
				Data:       data,
			})
		}
		return objects, nil
	})
}

// traffic counts the requests of an operator, but for watches, leases and what it skips.
type traffic struct {
	skips  func(*http.Request) bool
	mu     sync.Mutex
	counts counts
}

type counts struct {
	reads, writes, events int
	by                    map[string]int // reads and writes by verb and resource
}

// text returns the counts for each of n components.
func (c counts) text(n int) string {
	parts := make([]string, 0, len(c.by))
	for _, request := range slices.Sorted(maps.Keys(c.by)) {
		parts = append(parts, fmt.Sprintf("%s %.2f", request, float64(c.by[request])/float64(n)))
	}
	return strings.Join(parts, ", ")
}

func (c *traffic) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		c.note(r)
		return next.RoundTrip(r)
	})
}

func (c *traffic) note(r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case isWatch(r) || c.skips(r):
		return
	case isEvent(r):
		c.counts.events++
		return
	case r.Method == http.MethodGet:
		c.counts.reads++
	default:
		c.counts.writes++
	}
	if c.counts.by == nil {
		c.counts.by = map[string]int{}
	}
	c.counts.by[r.Method+" "+pathResource(r.URL.Path)]++
}

// drain returns the counts since the last call.
func (c *traffic) drain() counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	counted := c.counts
	c.counts = counts{}
	return counted
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

// TestRequestsOfAFleet counts the requests of an operator with many components of four objects, one of which
// is a Deployment that its controller rolls out. The numbers are exact promises for each component, but for what an
// operator asks once, and for conflicts with the controller. With the history each revision takes one request more.
func TestRequestsOfAFleet(t *testing.T) {
	const n, once = 40, 25
	f := newFixture(t)
	traffic := &traffic{skips: func(*http.Request) bool { return false }}
	var renderings atomic.Int64
	chart := "1"
	// A component whose Deployment is not ready is looked at again, on a slow machine before the event. A look renders and reads once, and
	// writes nothing. So many looks a component are not among the promised requests.
	expect := func(what string, requests, writes, events, rendered, mostLooks int) {
		t.Helper()
		got, render := traffic.drain(), int(renderings.Swap(0))
		looks := min(max(render-rendered*n, 0), mostLooks*n)
		t.Logf("%s: %.2f requests, %.2f events, %.2f renderings a component: %s",
			what, float64(got.reads+got.writes)/n, float64(got.events)/n, float64(render)/n, got.text(n))
		const slack = n / 4 // conflicts with the controller, on a slow machine
		if got.reads+got.writes-looks > requests*n+once+slack || got.writes > writes*n+slack+5 || got.events > events*n+slack || render-looks > rendered*n+slack {
			t.Errorf("%s: %d requests, %d writes, %d events and %d renderings without %d looks; want %d, %d, %d and %d a component",
				what, got.reads+got.writes-looks, got.writes, got.events, render-looks, looks, requests, writes, events, rendered)
		}
	}
	start := func() *operator { return f.startWith(t, podinfo(chart, &renderings), traffic.wrap) }
	create := func() []*Bundle {
		fleet := make([]*Bundle, 0, n)
		for i := range n {
			bundle := f.named(fmt.Sprintf("app-%d", i))
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
	expect("install", 11, 9, 2, 1, 1) // read, finalizer, record, four objects, history, progress, read, result

	for _, bundle := range fleet {
		f.update(t, bundle, map[string]string{"cpu": "2m"})
	}
	f.allReady(t, fleet, "1")
	expect("upgrade", 6, 4, 2, 1, 1) // read, Deployment, history, progress, read, result

	remove(fleet)
	expect("delete", 12, 6, 2, 0, 0) // read, four objects, history, a last look at each, because another process might have created it, finalizer, read

	fleet = create()
	f.allReady(t, fleet, "1")
	o.stop(t)
	traffic.drain()
	renderings.Store(0)
	o = start()
	eventually(t, "all components to be reconciled", func(context.Context) error {
		if got := renderings.Load(); got < n {
			return fmt.Errorf("%d renderings", got)
		}
		return nil
	})
	o.stop(t)
	expect("restart", 1, 0, 0, 1, 0) // read

	chart = "2"
	start()
	f.allReady(t, fleet, "2")
	expect("another chart", 8, 6, 2, 1, 0) // read, four objects, history (read and written), result

	remove(fleet)
	expect("delete after a restart", 12, 6, 2, 0, 0) // history, and a last look at each object
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
			got := live.GetLabels()["chart"]
			if !bundle.Status.IsReady() || bundle.Status.ObservedGeneration != bundle.Generation || got != chart {
				state, _, message := bundle.Status.GetState()
				return fmt.Errorf("%s: %s; chart %s", state, message, got)
			}
			return nil
		})
	}
}

// podinfo generates four objects, as the charts of small services do.
func podinfo(chart string, renderings *atomic.Int64) manifests.Generator {
	return manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, parameters corbeltypes.Unstructurable) ([]client.Object, error) {
		renderings.Add(1)
		pod := "{containers: [{name: podinfo, image: podinfo, resources: {requests: {cpu: " + cmp.Or(valueOf(parameters, "cpu"), "1m") + "}}}]}"
		texts := []string{
			serviceAccount(name), service(name, "9898"),
			head("apps/v1", "Deployment", name, nil) + "spec: {replicas: 0, selector: {matchLabels: {app: podinfo}}, " +
				"template: {metadata: {labels: {app: podinfo}}, spec: " + pod + "}}\n",
			head("networking.k8s.io/v1", "Ingress", name, nil) + "spec: {defaultBackend: {service: {name: " + name + ", port: {number: 9898}}}}\n",
		}
		for i := range texts {
			texts[i] = labelled(texts[i], "chart", chart)
		}
		return bundleManifests(ctx, namespace, name, values{"manifests": strings.Join(texts, "---\n")})
	})
}
