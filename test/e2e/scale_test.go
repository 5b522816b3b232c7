// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/wire"
)

// TestAComponentOfThousandsOfObjects installs, changes and deletes one component
// with an inventory that is too large for its status, with the default limits of etcd, and
// reports what it takes. CORBEL_SCALE=20000 sets the number of objects.
func TestAComponentOfThousandsOfObjects(t *testing.T) {
	n := scale(t)
	patience := time.Duration(n) * 100 * time.Millisecond
	f := newFixture(t)
	requests := &requestCounter{}
	var renderings atomic.Int64
	o := f.startWith(t, configMaps(n, &renderings), requests.wrap)
	step := func(name string, act func()) map[string]int {
		t.Helper()
		runtime.GC()
		requests.drain()
		heap, start := watchHeap(), time.Now()
		act()
		took, counts := time.Since(start), requests.drain()
		t.Logf("%s: %s, peak heap %d MiB, %d requests: %v", name, took.Round(time.Millisecond), heap()>>20, total(counts), counts)
		return counts
	}

	var bundle *Bundle
	counts := step("install", func() {
		bundle = f.bundle(t, map[string]string{"all": "1", "one": "1"})
		f.readyWithin(t, bundle, patience)
	})
	chunks := f.reportSize(t, bundle, n)
	// The first component of an operator also makes the Secret with the key of its digests, and each
	// the Secret of its revisions.
	if written := counts["POST secrets"] + counts["PATCH secrets"]; written > 2*chunks+2 {
		t.Errorf("%d writes of %d Secrets: each is to be written when the objects are planned, and when they are there", written, chunks)
	}
	counts = step("nothing changed", func() { o.reconciles(t, bundle, &renderings) })
	if writes := total(counts) - counts["GET configmaps"] - counts["GET bundles"] - counts["GET secrets"]; writes > 0 {
		t.Errorf("requests without a change: %v", counts)
	}
	counts = step("change one", func() {
		f.update(t, bundle, map[string]string{"all": "1", "one": "2"})
		f.readyWithin(t, bundle, patience)
	})
	if counts["PATCH secrets"] != 2 || counts["POST secrets"]+counts["DELETE secrets"] > 0 {
		t.Errorf("the change of one object: %v, want the write of one Secret of the inventory and of that of the revisions", counts)
	}
	step("change all", func() {
		f.update(t, bundle, map[string]string{"all": "2", "one": "2"})
		f.readyWithin(t, bundle, patience)
	})
	step("delete", func() {
		if err := f.Delete(t.Context(), bundle); err != nil {
			t.Fatal(err)
		}
		f.goneWithin(t, bundle, patience)
	})
	if left := f.inventorySecrets(t); len(left) > 0 {
		t.Errorf("%d Secrets of the inventory are left", len(left))
	}
	if left := f.owned(t, f.ownerOf()); len(left) > 0 {
		t.Errorf("%d objects are left", len(left))
	}
}

// scale is the number of objects.
func scale(t *testing.T) int {
	t.Helper()
	text := os.Getenv("CORBEL_SCALE")
	if text == "" {
		return 600
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 400 {
		t.Fatalf("CORBEL_SCALE=%s: must be a number of at least 400", text)
	}
	return n
}

// reportSize says how large the record is, and returns the number of Secrets.
func (f *fixture) reportSize(t *testing.T, bundle *Bundle, n int) int {
	t.Helper()
	status, err := json.Marshal(bundle.Status)
	if err != nil {
		t.Fatal(err)
	}
	secrets, bytes, largest := f.inventorySecrets(t), 0, 0
	for _, s := range secrets {
		size := 0
		for _, entry := range s.Data {
			size += len(entry)
		}
		bytes, largest = bytes+size, max(largest, size)
	}
	t.Logf("%d objects: status %d bytes, %d Secrets of %d bytes, the largest %d", n, len(status), len(secrets), bytes, largest)
	if len(status) > 64<<10 || largest > 512<<10 {
		t.Errorf("the status has %d bytes, the largest Secret %d", len(status), largest)
	}
	if count := bundle.Status.Inventory.Count(); count != n || len(bundle.Status.Inventory.Items) > 0 {
		t.Errorf("the inventory names %d objects, %d of them in the status", count, len(bundle.Status.Inventory.Items))
	}
	return len(secrets)
}

// inventorySecrets are the Secrets that hold a part of an inventory.
func (f *fixture) inventorySecrets(t *testing.T) []corev1.Secret {
	t.Helper()
	list := &corev1.SecretList{}
	if err := f.List(t.Context(), list, client.InNamespace(f.namespace), client.HasLabels{reconcilerName + "/inventory-of"}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// watchHeap samples the heap until the returned function is called, which returns
// the most that was in use.
func watchHeap() func() uint64 {
	done, peak := make(chan struct{}), make(chan uint64)
	go func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		var most uint64
		for {
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			most = max(most, stats.HeapAlloc)
			select {
			case <-ticker.C:
			case <-done:
				peak <- most
				return
			}
		}
	}()
	return func() uint64 {
		close(done)
		return <-peak
	}
}

// requestCounter counts the requests of an operator by method and resource, but for
// watches, what informers list, events and leases.
type requestCounter struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *requestCounter) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if !isWatch(r) && !isInformer(r) && !isEvent(r) {
			c.mu.Lock()
			if c.counts == nil {
				c.counts = map[string]int{}
			}
			c.counts[r.Method+" "+resourceOf(r.URL.Path)]++
			c.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

// drain returns the counts since the last call.
func (c *requestCounter) drain() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	counted := c.counts
	c.counts = nil
	return counted
}

func total(counts map[string]int) int {
	sum := 0
	for n := range maps.Values(counts) {
		sum += n
	}
	return sum
}

// resourceOf returns the resource, and the subresource, that a path is about.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if i := slices.Index(parts, "namespaces"); i >= 0 && len(parts) > i+2 {
		resource := parts[i+2]
		if len(parts) > i+4 {
			resource += "/" + parts[i+4]
		}
		return resource
	}
	return fmt.Sprint(parts)
}
