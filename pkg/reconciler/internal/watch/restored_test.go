// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"
)

// restore puts back what a storage held at version 50.
func (s *server) restore() {
	s.version, s.history = 50, nil
	s.objects[objectName{"shop", "pod"}] = withVersion(object("shop", "pod", "1", "a", "one"), "40")
	delete(s.objects, objectName{"shop", "late"})
}

func TestAStorageThatWasRestoredWithoutAWatchIsRecognized(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.server.put(object("shop", "pod", "1", "a", "one"))
		b.server.put(object("shop", "late", "2", "a", "one"))
		b.keep("a", inShop)
		b.server.set(func(s *server) { s.refuse = forbid("", "shop") })
		b.server.cut()
		advance(time.Minute)
		b.misses(inShop, "pod", false)
		b.store.Read("a", inShop, "pod", reduced(b.server.change("shop", "pod", content("two"))))
		b.server.remove("shop", "late")
		b.store.Read("a", inShop, "late", *gone("2"))

		b.server.set(func(s *server) {
			s.restore()
			s.objects[objectName{"shop", "late"}] = withVersion(object("shop", "late", "2", "a", "back"), "41")
			s.refuse = nil
		})
		advance(time.Hour)
		b.sees(inShop, "pod", "one")
		b.sees(inShop, "late", "back")
		b.expect("as it was", "a: late Content", "a: pod Content")
		b.store.Read("a", inShop, "pod", reduced(b.server.change("shop", "pod", content("three"))))
		b.sees(inShop, "pod", "three")
	})
}

// What we were answered after a list was asked for is newer than the list, on the same storage.
func TestAnAnswerThatOvertakesTheListDoesNotMakeItARestoredOne(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.server.put(object("shop", "pod", "1", "a", "one"))
		b.server.set(func(s *server) {
			s.after = func(*fakeStream) {
				b.store.Read("a", inShop, "pod", reduced(withVersion(object("shop", "pod", "1", "a", "two"), "150")))
			}
		})
		b.keep("a", inShop)
		b.sees(inShop, "pod", "two")
	})
}
