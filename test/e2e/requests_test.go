// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	traffic := &trafficCounter{}
	expect := func(what string, most counts) {
		t.Helper()
		got := traffic.drain()
		t.Logf("%s: %s", what, got)
		if got.reads > most.reads || got.writes > most.writes {
			t.Errorf("%s: %s, want at most %s; the last of them: %q", what, got, most, got.last)
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
		values := parameters.ToUnstructured()
		objects := make([]client.Object, 0, n)
		for i := range n {
			data := map[string]string{"all": fmt.Sprint(values["all"])}
			if i == 0 {
				data["one"] = fmt.Sprint(values["one"])
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

// trafficCounter counts the requests of an operator, but for watches, what informers
// list, events and leases.
type trafficCounter struct {
	mu     sync.Mutex
	counts counts
}

type counts struct {
	reads, writes int
	// last are the last few requests, each as method and path.
	last []string
}

// String returns the counts as text.
func (c counts) String() string { return fmt.Sprintf("%d reads and %d writes", c.reads, c.writes) }

func (c *trafficCounter) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if !isWatch(r) && !isInformer(r) && !isEvent(r) {
			c.mu.Lock()
			if r.Method == http.MethodGet {
				c.counts.reads++
			} else {
				c.counts.writes++
			}
			c.counts.last = append(c.counts.last, r.Method+" "+r.URL.Path)
			c.counts.last = c.counts.last[max(0, len(c.counts.last)-10):]
			c.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

// drain returns the counts since the last call.
func (c *trafficCounter) drain() counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	counted := c.counts
	c.counts = counts{}
	return counted
}
