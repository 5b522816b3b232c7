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
)

// TestRequests counts the requests of an operator with one component of 1000
// ConfigMaps. The numbers are exact promises, not measurements of speed.
func TestRequests(t *testing.T) {
	const n = 1000
	f := newFixture(t)
	tally := &tally{}
	var renderings atomic.Int64
	o := f.startWith(t, configMaps(n, &renderings), tally.wrap)

	bundle := f.bundle(t, map[string]string{"all": "1", "one": "1"})
	f.ready(t, bundle)
	install := tally.take()
	t.Logf("install: %s", install)
	if install.total() > n*21/10 {
		t.Errorf("the installation of %d objects took %s, want at most 2.1 requests an object", n, install)
	}

	f.update(t, bundle, map[string]string{"all": "1", "one": "2"})
	f.ready(t, bundle)
	change := tally.take()
	t.Logf("change of one: %s", change)
	// The status is written when the work begins and when it ends.
	if change.writes > 3 {
		t.Errorf("the change of one object took %s, want the write of the object and of the status only", change)
	}

	o.passes(t, bundle, &renderings)
	rest := tally.take()
	t.Logf("at rest, one pass and the beginning of another: %s", rest)
	if rest.writes > 0 {
		t.Errorf("a pass without a change took %s, want no write", rest)
	}
}

// passes lets one whole pass happen, and the beginning of another one, which shows
// that the first has ended.
func (o *operator) passes(t testing.TB, bundle *Bundle, renderings *atomic.Int64) {
	t.Helper()
	for range 2 {
		passes := renderings.Load()
		if err := o.reconciler.Trigger(bundle.Namespace, bundle.Name); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the next pass", func(context.Context) error {
			if renderings.Load() == passes {
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

// tally counts the requests of an operator, but for watches, what informers
// list, events and leases.
type tally struct {
	mu     sync.Mutex
	counts counts
}

type counts struct{ reads, writes int }

func (c counts) total() int { return c.reads + c.writes }

// String returns the counts as text.
func (c counts) String() string { return fmt.Sprintf("%d reads and %d writes", c.reads, c.writes) }

func (c *tally) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if !isWatch(r) && !isInformer(r) && !isEvent(r) {
			c.mu.Lock()
			if r.Method == http.MethodGet {
				c.counts.reads++
			} else {
				c.counts.writes++
			}
			c.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

// take returns the counts since the last call.
func (c *tally) take() counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.counts
	c.counts = counts{}
	return taken
}
