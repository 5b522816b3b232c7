// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

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
	if stats := b.store.Stats(); stats.Writing != 0 {
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
