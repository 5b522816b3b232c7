// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/internal/cluster"
)

// forbid refuses to list and watch in namespaces; the empty one is the whole cluster.
func forbid(namespaces ...string) func(what, namespace string) error {
	return func(_, namespace string) error {
		if slices.Contains(namespaces, namespace) {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
		}
		return nil
	}
}

var inBank = Place{Resource: pods, Namespace: "bank"}

func TestWhereTheClusterIsForbiddenNamespacesAreWatched(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.server.put(object("shop", "pod", "1", "a", "one"))
		b.server.put(object("bank", "pod", "2", "a", "one"))
		b.server.set(func(s *server) { s.refuse = forbid("", "bank") })
		b.keep("a", inShop)
		b.asked("the whole cluster, then the namespace", "watch", "watch shop")
		b.sees(inShop, "pod", "one")
		b.keep("a", inShop, inBank)
		b.asked("another namespace", "watch bank")
		b.misses(inBank, "pod", false)
		b.expect("nothing changed")

		b.server.set(func(s *server) { s.refuse = forbid("") })
		advance(59 * time.Second)
		b.asked("before Retry")
		advance(2 * time.Second)
		b.asked("after Retry", "watch bank")
		b.sees(inBank, "pod", "one")

		b.server.set(func(s *server) { s.refuse = nil })
		advance(8 * time.Minute)
		b.server.asked() // watches that ended after their time
		advance(2 * time.Minute)
		b.sees(inShop, "pod", "one")
		b.sees(inBank, "pod", "one")
		if stats := sizesOf(b.store); stats.reflectors != 1 || stats.refused != 0 || stats.records != 2 {
			t.Errorf("the whole cluster is tried again after ten times as long: %+v", stats)
		}
		b.expect("still nothing changed")
	})
}

func TestRightsThatAreRevokedMakeItOnlySlower(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.server.put(object("shop", "pod", "1", "a", "one"))
		b.server.put(object("shop", "old", "2", "a", "one"))
		b.keep("a", inShop)
		advance(2 * time.Second)
		b.server.set(func(s *server) { s.refuse = forbid("") })
		b.server.cut()
		advance(6 * time.Second)
		b.sees(inShop, "pod", "one")
		b.asked("the namespace takes the place of the cluster, which may have lost its rights only for a moment",
			"watch", "rewatch", "watch shop", "watch", "watch")

		b.server.set(func(s *server) { s.refuse = forbid("", "shop") })
		b.server.cut()
		advance(2 * time.Second)
		b.misses(inShop, "pod", false)
		edit(func(o *unstructured.Unstructured) { o.Object["spec"] = "two" })(b.server)
		b.server.remove("shop", "old")
		b.server.put(object("shop", "new", "3", "a", "one"))
		b.server.set(func(s *server) { s.refuse = forbid("") })
		advance(time.Minute)
		b.sees(inShop, "pod", "two")
		b.expect("what changed without a watch", "a: new Content", "a: old Vanished", "a: pod Content")
	})
}

func TestATypeThatIsNotServedIsTriedAgainSoon(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.server.set(func(s *server) {
			s.refuse = func(string, string) error {
				return &cluster.UnservedPathError{Resource: pods, Err: apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "", 0, false)}
			}
		})
		b.keep("a", inShop)
		b.misses(inShop, "pod", false)
		b.asked("namespaces would be no better", "watch")
		advance(5 * time.Second)
		b.asked("with growing pauses", "watch", "watch")
		b.server.set(func(s *server) { s.refuse = nil })
		advance(5 * time.Second)
		b.misses(inShop, "pod", true)
	})
}

func TestTypesWithoutTheVerbsAreNotWatched(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		mute := inShop
		mute.Resource.Verbs = []string{"get", "list", "create"}
		lost := Place{Resource: pods}
		b.keep("a", mute, lost)
		b.asked("nothing")
		b.misses(mute, "pod", false)
		b.misses(lost, "pod", false)
	})
}

func TestNoMoreReflectorsThanTheLimit(t *testing.T) {
	inBubble(t, Options{Limit: 1}, func(b *bed) {
		maps := inShop
		maps.Resource.GVR.Resource, maps.Resource.Kind = "configmaps", "ConfigMap"
		b.keep("a", inShop)
		b.keep("b", maps)
		b.misses(inShop, "pod", true)
		b.misses(maps, "pod", false)
		b.store.Keep("a", nil)
		advance(2 * time.Minute)
		b.misses(maps, "pod", true)
	})
}

func TestAReflectorThatNoOwnerUsesLingersAndEnds(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.server.put(object("shop", "pod", "1", "a", "one"))
		b.keep("a", inShop)
		b.keep("b", inShop)
		b.store.Keep("a", nil)
		advance(time.Hour)
		b.sees(inShop, "pod", "one")
		b.store.Keep("b", nil)
		advance(59 * time.Second)
		b.sees(inShop, "pod", "one")
		b.keep("a", inShop)
		b.store.Keep("a", nil)
		advance(59 * time.Second)
		b.sees(inShop, "pod", "one")
		advance(2 * time.Second)
		b.misses(inShop, "pod", false)
		if stats := sizesOf(b.store); stats != (sizes{}) {
			t.Errorf("%+v", stats)
		}
		b.server.set(func(s *server) {
			if len(s.streams) > 0 {
				t.Error("a watch goes on")
			}
		})
	})
}

func TestABrokenWatchIsBelievedForAWhile(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.server.put(object("shop", "pod", "1", "a", "one"))
		b.keep("a", inShop)
		b.server.set(func(s *server) { s.refuse = func(string, string) error { return errors.New("the line is dead") } })
		b.server.cut()
		advance(9 * time.Second)
		b.sees(inShop, "pod", "one")
		edit(func(o *unstructured.Unstructured) { o.Object["spec"] = "two" })(b.server)
		advance(2 * time.Second)
		b.misses(inShop, "pod", false)
		advance(time.Hour)
		b.misses(inShop, "pod", false)
		b.expect("nothing is known")
		b.server.set(func(s *server) { s.refuse = nil })
		advance(30 * time.Second)
		b.sees(inShop, "pod", "two")
		b.expect("notified when it is known", "a: pod Content")
	})
}

func TestAWatchThatIsTooOldListsAnew(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.server.put(object("shop", "pod", "1", "a", "one"))
		b.server.put(object("shop", "same", "2", "a", "one"))
		b.keep("a", inShop)
		b.server.set(func(s *server) { s.compacted = 10_000 })
		b.server.cut()
		edit(func(o *unstructured.Unstructured) { o.Object["spec"] = "two" })(b.server)
		advance(5 * time.Second)
		b.sees(inShop, "pod", "two")
		b.expect("only what differs", "a: pod Content")

		b.server.set(func(s *server) { s.streams[0].events <- fakeEvent{code: http.StatusGone} }) // an error in the stream: expired
		b.server.asked()
		advance(5 * time.Second)
		b.asked("anew", "watch")
		b.expect("nothing differs")
	})
}
