// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/corbel-run/corbel/pkg/cluster"
)

func TestABusyTargetGoesOnlyIfNothingIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := map[cluster.Target]bool{}
		w := newWorld(t, Options{Busy: func(target cluster.Target) bool { return busy[target] }})
		w.limit = 3
		enter := func(name string) {
			time.Sleep(time.Second)
			_, _ = w.Enter(remote(name), waiter(name))
			synctest.Wait()
			if lease, err := w.Enter(remote(name), waiter(name)); err == nil {
				lease.Release()
			}
		}
		kept := func(what string, names ...string) {
			t.Helper()
			for _, name := range names {
				if w.entries[remote(name).key()] == nil {
					t.Errorf("%s: %s is not kept", what, name)
				}
			}
		}
		for _, name := range []string{"a", "b"} {
			enter(name)
			busy[w.entries[remote(name).key()].target] = true
		}
		enter("idle")
		enter("c")
		kept("one was idle", "a", "b", "c")
		busy[w.entries[remote("c").key()].target] = true
		enter("d")
		kept("the longest unused goes if all are busy", "b", "c", "d")
	})
}
