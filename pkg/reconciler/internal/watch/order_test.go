// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"reflect"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/check"
)

func TestAListKeepsAnswersThatAreNewer(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.server.put(object("shop", "pod", "1", "a", "one"))
		b.server.put(object("shop", "dead", "2", "a", "one"))
		b.keep("a", inShop)
		// The list is as old as the server was before our writes.
		k := b.store.kinds[inShop.kind()]
		list := map[types.NamespacedName]*record{}
		for _, live := range b.server.selected("") {
			list[types.NamespacedName{Namespace: live.GetNamespace(), Name: live.GetName()}] = recordOf(reduced(live))
		}
		version := b.server.objects[objectName{"shop", "dead"}].GetResourceVersion()
		b.server.hold()
		b.store.Writing("a", inShop, "pod")(answer(b.server.change("shop", "pod", content("two"))))
		b.store.Writing("a", inShop, "new")(answer(b.server.put(object("shop", "new", "3", "a", "one"))))
		b.server.remove("shop", "dead")
		b.store.Writing("a", inShop, "dead")(gone("2"))
		k.scopes[wide].Replace(list, version, true)
		b.sees(inShop, "pod", "two")
		b.sees(inShop, "new", "one")
		b.misses(inShop, "dead", true)
		b.server.release()
		b.expect("all ours")
	})
}

func TestAnswersBeforeTheFirstListAreKept(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.server.set(func(s *server) { s.deaf = true })
		b.store.Keep("a", []Place{inShop})
		advance(time.Second)
		b.store.Writing("a", inShop, "pod")(answer(b.server.put(object("shop", "pod", "1", "a", "one"))))
		b.store.Read("b", inShop, "new", reduced(b.server.put(object("shop", "new", "2", "a", "one"))))
		b.misses(inShop, "pod", false)
		advance(2 * time.Minute)
		b.sees(inShop, "pod", "one")
		b.expect("what is there from the beginning")
	})
}

func TestOtherOwnersAreNotifiedOfWhatAnOwnerWritesAndReads(t *testing.T) {
	t.Run("it adopts the object", func(t *testing.T) {
		withPod(t, func(b *bed) {
			done := b.store.Writing("b", inShop, "pod")
			outcome := answer(b.server.change("shop", "pod", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{label: "b"}) }))
			b.server.release()
			done(outcome)
			b.expect("to the owner that had it", "a: pod Content")
		})
	})
	t.Run("it removes the object", func(t *testing.T) {
		withPod(t, func(b *bed) {
			done := b.store.Writing("b", inShop, "pod")
			b.server.remove("shop", "pod")
			done(gone("1"))
			b.server.release()
			b.expect("to the former owner", "a: pod Vanished")
		})
	})
	t.Run("it reads that it changed", func(t *testing.T) {
		withPod(t, func(b *bed) {
			b.store.Read("b", inShop, "pod", reduced(b.server.change("shop", "pod", content("two"))))
			b.expect("to the owner", "a: pod Content")
			b.server.release()
			b.expect("once")
		})
	})
}

func TestAReadIsRecordedIfItIsNewer(t *testing.T) {
	withPod(t, func(b *bed) {
		b.store.Read("a", inShop, "pod", reduced(b.server.change("shop", "pod", content("two"))))
		b.sees(inShop, "pod", "two")
		old := reduced(withVersion(object("shop", "pod", "1", "a", "old"), "1"))
		b.store.Read("a", inShop, "pod", old)
		b.sees(inShop, "pod", "two")
		b.store.Read("a", inShop, "pod", plan.Observation{})
		b.store.Read("a", inShop, "pod", plan.Observation{Existence: plan.Absent})
		b.store.Read("a", inShop, "pod", *gone("another"))
		b.sees(inShop, "pod", "two")
		b.server.remove("shop", "pod")
		b.store.Read("a", inShop, "pod", *gone("1"))
		b.misses(inShop, "pod", true)
		b.server.release()
		b.expect("no owner")
	})
}

func TestVersionsThatCannotBeComparedCountInTheOrderOfTheirArrival(t *testing.T) {
	withPod(t, func(b *bed) {
		b.store.Read("a", inShop, "pod", reduced(withVersion(object("shop", "pod", "1", "a", "two"), "v2-abc")))
		b.sees(inShop, "pod", "two")
		b.store.Read("a", inShop, "pod", reduced(withVersion(object("shop", "pod", "1", "a", "three"), "v1-def")))
		b.sees(inShop, "pod", "three")
	})
}

func TestAnEventFromBeforeTheListComesTooLate(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.server.put(object("shop", "pod", "1", "a", "one"))
		old := b.server.remove("shop", "pod")
		b.keep("a", inShop)
		b.server.set(func(s *server) { s.streams[0].events <- fakeEvent{what: "ADDED", object: old} })
		b.misses(inShop, "pod", true)
		b.expect("what is long gone")
	})
}

func TestWhatAnotherReadsOfAWriteUnderWayIsStillAnEcho(t *testing.T) {
	withPod(t, func(b *bed) {
		done := b.store.Writing("a", inShop, "pod")
		outcome := answer(b.server.change("shop", "pod", content("two")))
		b.store.Read("b", inShop, "pod", *outcome)
		b.expect("held back")
		done(outcome)
		b.server.release()
		b.expect("echo")
		b.sees(inShop, "pod", "two")
	})
}

// No object of the server is kept, such as a Secret: its record takes its place.
func TestNothingIsKeptOfAnObjectButItsRecord(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		var arrived, freed atomic.Int64
		b.store.options.Reduce = func(live *unstructured.Unstructured) plan.Observation {
			arrived.Add(1)
			runtime.AddCleanup(live, func(int) { freed.Add(1) }, 0)
			return reduced(live)
		}
		b.server.put(object("shop", "pod", "1", "a", "one"))
		b.keep("a", inShop)
		edit(content("two"))(b.server)
		b.sees(inShop, "pod", "two")
		for range 10_000 { // the last object of a stream stays on the stack of its reader
			if runtime.GC(); arrived.Load() >= 2 && freed.Load() >= arrived.Load()-1 {
				return
			}
		}
		t.Errorf("%d objects arrived, and %d were freed", arrived.Load(), freed.Load())
	})
}

func TestARecordHoldsTheWholeObservation(t *testing.T) {
	full := plan.Observation{
		Existence: plan.Present, UID: "uid", ResourceVersion: "7", ObservedHash: "seen", Scaled: &plan.Scaling{Path: "spec.replicas", Replicas: 3, Manager: "kubectl"}, HasOwnerReferences: true, Finish: plan.FinishFailed,
		Ownership: plan.Ownership{
			OwnerID: "a", Ref: plan.OwnerRef{Group: "g", Kind: "K", Namespace: "n", Name: "o", UID: "u"},
			OtherOwners: []string{"Helm release shop/web", "inventory x"},
		},
		DeletionTimestamp: time.Unix(2000, 0), CreationTimestamp: time.Unix(1000, 0), Finalizers: []string{"x/y", "z"},
		Status: plan.Status{Readiness: plan.Failed, Message: "broken"}, Carried: `{"spec":{"replicas":3}}`,
	}
	for _, o := range []plan.Observation{full, {Existence: plan.Present, UID: "uid"}} {
		check.Equal(t, o, recordOf(o).observation())
	}
	fields := reflect.ValueOf(full)
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Name
		if fields.Field(i).IsZero() && !slices.Contains([]string{"Message", "NotServed", "Forbidden", "Seal", "AppliedHash", "EarlierAppliedHash", "Reclaims", "Drift", "Differs", "Deferred", "Webhooks", "Automatic", "Altered", "Shared"}, name) {
			t.Errorf("it is not known whether %s is kept", name)
		}
	}
}

func content(text string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.Object["spec"] = text }
}

// gone is the answer to a deletion after which nothing is left.
func gone(uid string) *plan.Observation {
	o := plan.Observation{Existence: plan.Absent}
	o.UID = object("", "x", uid, "", "").GetUID()
	return &o
}

// withPod is a bed with one object of an owner, known, and events held back.
func withPod(t *testing.T, test func(*bed)) {
	t.Helper()
	inBubble(t, Options{}, func(b *bed) {
		b.server.put(object("shop", "pod", "1", "a", "one"))
		b.keep("a", inShop)
		b.server.hold()
		test(b)
	})
}

func TestTheEchoOfAWriteNotifiesNoOwner(t *testing.T) {
	writes := map[string]func(*server) *plan.Observation{
		"update": func(s *server) *plan.Observation { return answer(s.change("shop", "pod", content("two"))) },
		"delete": func(s *server) *plan.Observation { s.remove("shop", "pod"); return gone("1") },
		"delete, uid not in the answer": func(s *server) *plan.Observation {
			s.remove("shop", "pod")
			return gone("")
		},
		"release": func(s *server) *plan.Observation {
			return answer(s.change("shop", "pod", func(o *unstructured.Unstructured) { o.SetLabels(nil) }))
		},
		"create": func(s *server) *plan.Observation { return answer(s.put(object("shop", "new", "2", "a", "one"))) },
		"nothing written": func(s *server) *plan.Observation {
			return answer(s.change("shop", "pod", func(*unstructured.Unstructured) {}))
		},
	}
	for verb, write := range writes {
		name := "pod"
		if verb == "create" {
			name = "new"
		}
		t.Run(verb+", event after the answer", func(t *testing.T) {
			withPod(t, func(b *bed) {
				done := b.store.Writing("a", inShop, name)
				done(write(b.server))
				at, _, _ := b.store.Look(inShop, name)
				b.server.release()
				b.expect("echo")
				if after, _, _ := b.store.Look(inShop, name); after.ResourceVersion != at.ResourceVersion {
					t.Errorf("%q became %q", at.ResourceVersion, after.ResourceVersion)
				}
				expectNoWrites(b)
			})
		})
		t.Run(verb+", event before the answer", func(t *testing.T) {
			withPod(t, func(b *bed) {
				done := b.store.Writing("a", inShop, name)
				outcome := write(b.server)
				b.server.release()
				b.expect("held back")
				done(outcome)
				done(outcome)
				b.expect("echo")
				expectNoWrites(b)
			})
		})
	}
}

func expectNoWrites(b *bed) {
	b.Helper()
	if stats := sizesOf(b.store); stats.writing != 0 {
		b.Errorf("%+v", stats)
	}
}

func TestAnObjectThatWaitsForItsFinalizersIsReportedWhenItIsGone(t *testing.T) {
	withPod(t, func(b *bed) {
		done := b.store.Writing("a", inShop, "pod")
		outcome := b.server.change("shop", "pod", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"x"}) })
		b.server.release()
		done(answer(outcome))
		b.expect("our deletion")
		b.server.remove("shop", "pod")
		b.expect("gone", "a: pod Vanished")
	})
}

func TestMemoryIsBounded(t *testing.T) {
	var m recent[int, int]
	at := time.Now()
	for i := range maxRecent + 100 {
		m.put(i, i, at)
	}
	if len(m.entries) != maxRecent || len(m.order) != maxRecent {
		t.Errorf("%d, %d", len(m.entries), len(m.order))
	}
	m.put(500, 1, at.Add(maxAge))
	m.put(1, 2, at.Add(maxAge+time.Second))
	if value, ok := m.get(500); value != 1 || !ok || len(m.entries) != 2 || len(m.order) != 2 {
		t.Errorf("%d, %d", len(m.entries), len(m.order))
	}
	m.drop(500)
	if _, ok := m.get(500); ok {
		t.Error("not dropped")
	}
}
