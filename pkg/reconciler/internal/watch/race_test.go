// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestManyAtOnce is for the race detector, and shows that what all of them did
// is known in the end.
func TestManyAtOnce(t *testing.T) {
	inBubble(t, Options{Linger: time.Second, Retry: time.Second}, func(b *bed) {
		const workers, steps = 6, 60
		at := func(worker int) (place Place, name, owner string) {
			place = Place{Resource: pods, Namespace: fmt.Sprintf("ns-%d", worker%3)}
			return place, fmt.Sprintf("pod-%d", worker), fmt.Sprintf("owner-%d", worker)
		}
		for worker := range workers {
			place, name, owner := at(worker)
			b.server.put(object(place.Namespace, name, name, owner, "0"))
		}
		var group sync.WaitGroup
		for worker := range workers {
			place, name, owner := at(worker)
			group.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(worker)))
				for step := range steps {
					b.store.Keep(owner, []Place{place})
					switch random.IntN(7) {
					case 0:
						b.store.Keep(owner, nil)
					case 1:
						b.server.cut()
					case 2:
						b.server.set(func(s *server) { s.refuse = forbid("") })
					case 3:
						b.server.set(func(s *server) { s.refuse = nil })
					default:
						done := b.store.Writing(owner, place, name)
						live := b.server.change(place.Namespace, name, func(o *unstructured.Unstructured) { o.Object["spec"] = fmt.Sprint(step) })
						done(answer(live))
						b.store.Read(owner, place, name, reduced(live))
					}
					b.store.Look(place, name)
					b.store.Stats()
					time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
				}
				b.server.set(func(s *server) { s.refuse = nil })
				b.store.Keep(owner, []Place{place})
			})
		}
		group.Wait()
		advance(time.Minute)
		for at, live := range b.server.objects {
			content, _, _ := unstructured.NestedString(live.Object, "spec")
			b.sees(Place{Resource: pods, Namespace: at.namespace}, at.name, content)
		}
		b.expect("only the owners did anything")
		if stats := b.store.Stats(); stats.Reflectors != 1 || stats.Writing != 0 || stats.Records != workers {
			t.Errorf("%+v", stats)
		}
		synctest.Wait()
	})
}
