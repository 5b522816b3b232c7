// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/cluster"
)

// patience is how long a test waits for what should happen at once.
const patience = 20 * time.Second

// Whoever is told of an eviction waits for those who use the target in the background,
// and their last requests may fail.
func TestWhatEndsWithATargetReportsToThePool(t *testing.T) {
	for name, evict := range map[string]func(t *testing.T, w *world){
		"it is unused": func(_ *testing.T, w *world) {
			w.Pool.mu.Lock()
			w.entries[remote("a").key()].usedAt = time.Now().Add(-unusedFor)
			w.Pool.mu.Unlock()
			w.sweep()
		},
		"others need the room": func(_ *testing.T, w *world) {
			_, _ = w.Enter(remote("b"), waiter("b"))
		},
		"its address leads to another cluster": func(_ *testing.T, w *world) {
			w.answers(says(200, kubeSystem("another")))
			w.doubt(w.entries[remote("a").key()])
			_, _ = w.Enter(remote("a"), waiter("one"))
		},
		"the pool is closed": func(_ *testing.T, w *world) { w.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{})
			w.limit = 1
			lease := patiently(t, w.Pool, remote("a"))
			gone, told, returned := lease.Target, make(chan struct{}), make(chan struct{})
			lease.Release()
			closes := name == "the pool is closed"
			w.options.Evicted = func(target cluster.Target) {
				if target != gone {
					return
				}
				defer close(told)
				reported := w.breaks(t, target)
				// Only Close waits.
				if reported && !closes && within(t, returned, "whoever evicts waits for the end of the target") {
					w.answers(says(200, kubeSystem("another")))
					next := patiently(t, w.Pool, remote("a"))
					defer next.Release()
					if next.Target == gone {
						t.Error("somebody got the target that ends")
					}
				}
			}
			evict(t, w)
			close(returned)
			if closes {
				select {
				case <-told:
				default:
					t.Error("Close returned before all were told")
				}
			}
			within(t, told, "nobody was told")
		})
	}
}

// breaks lets a watch of the target fail in the background, and tells whether it did.
func (w *world) breaks(t *testing.T, target cluster.Target) bool {
	w.answers(refuses)
	failed := make(chan struct{})
	go func() {
		defer close(failed)
		if _, err := target.Objects().Watch(t.Context(), namespaces, "", metav1.ListOptions{}); err == nil {
			t.Error("the watch did not fail")
		}
	}()
	return within(t, failed, "a watch cannot report its failure")
}

func within(t *testing.T, happened <-chan struct{}, otherwise string) bool {
	t.Helper()
	select {
	case <-happened:
		return true
	case <-time.After(patience):
		t.Error(otherwise)
		return false
	}
}
