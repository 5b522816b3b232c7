// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lookout

import (
	"testing"
	"time"
)

func TestAWaiterIsWokenOnceForEachChangeAndNotForWhatItSaw(t *testing.T) {
	inBubble(t, Options{}, func(w *world) {
		seen := w.change("a/1", "")
		w.set("me", point("a/1", seen), point("a/2", ""))
		w.begin("a/1")
		w.begin("a/2")
		w.expect("")
		seen = w.change("a/1", "a/1")
		w.expect("me")
		w.begin("a/1") // as after a broken watch
		w.expect("")
		w.set("me", point("a/1", seen), point("a/2", ""))
		w.expect("")
		missing := w.change("a/2", "a/2")
		w.expect("me")
		w.set("me", point("a/1", seen), point("a/2", missing))
		w.remove("a/1", "a/1")
		w.expect("me")
		w.set("me", point("a/1", ""), point("a/2", missing))
		w.expect("")
	})
}

func TestAChangeBetweenTheReadAndTheBeginningOfTheWatchWakes(t *testing.T) {
	inBubble(t, Options{}, func(w *world) {
		seen := w.change("a/1", "")
		w.change("a/1", "")
		w.set("me", point("a/1", seen), point("a/2", "11"))
		w.expect("")
		w.begin("a/1")
		w.expect("me")
		w.begin("a/2") // deleted meanwhile
		w.expect("me")
		// A watch that is there already tells the next one at once.
		w.set("you", point("a/1", seen))
		w.expect("you")
	})
}

func TestManyChangesAtOnceAreOneWakeForEachWaiter(t *testing.T) {
	inBubble(t, Options{}, func(w *world) {
		w.set("me", point("a/1", ""), point("a/2", ""), point("a/3", ""))
		w.set("you", point("a/3", ""))
		for _, name := range []string{"a/1", "a/2", "a/3"} {
			w.begin(name)
			w.change(name, name)
		}
		w.expect("me you")
	})
}

func TestAWatchThatLagsBehindWakesNobodyOverAndOver(t *testing.T) {
	inBubble(t, Options{}, func(w *world) {
		old := w.change("a/1", "")
		w.set("me", point("a/1", old))
		w.begin("a/1")
		// The waiter reads that it has gone, the watch still shows it.
		for range 100 {
			w.set("me", point("a/1", ""))
		}
		w.expect("me")
		for range 10 {
			w.set("me", point("a/1", ""))
			w.expect("")
		}
		// The waiter reads the next one, the watch still shows the first.
		w.set("me", point("a/1", w.change("a/1", "")))
		w.expect("")
	})
}

func TestWhoWaitsForNothingIsNotWokenAndItsWatchesEndAfterAWhile(t *testing.T) {
	inBubble(t, Options{}, func(w *world) {
		w.set("me", point("a/1", ""))
		w.begin("a/1")
		w.change("a/1", "a/1")
		w.set("me")
		w.expect("")
		if got := w.Stats(); got != (Stats{Watches: 1, Synced: 1}) {
			t.Errorf("%+v", got)
		}
		time.Sleep(29 * time.Second)
		w.set("you", point("a/1", "11"))
		time.Sleep(time.Minute)
		if got := w.Stats(); got != (Stats{Watches: 1, Synced: 1, Waiters: 1}) {
			t.Errorf("it ended although it was needed again: %+v", got)
		}
		w.set("you")
		time.Sleep(31 * time.Second)
		if got := w.Stats(); got != (Stats{}) || len(w.wanted) > 0 {
			t.Errorf("%+v, %d wanted", got, len(w.wanted))
		}
	})
}

func TestWhoWaitsForAllOfATypeIsWokenWhenTheWatchBeginsAndForEveryChange(t *testing.T) {
	inBubble(t, Options{}, func(w *world) {
		all, gone := point("*/*", ""), point("*/*", "")
		gone.Vanishing = true
		w.change("a/1", "")
		w.set("all", all)
		w.set("gone", gone)
		w.begin("*/*")
		w.wakes()
		w.set("all", all)
		w.set("gone", gone)
		w.expect("")
		w.change("a/2", "*/*")
		w.expect("all")
		w.remove("a/1", "*/*")
		w.expect("all gone")
		delete(w.versions, object{"a", "2"})
		w.begin("*/*") // it has gone while the watch was broken
		w.expect("all gone")
		w.set("late", all)
		w.expect("late")
	})
}

func TestAnObjectThatChangesAllTheTimeDoesNotKeepItsWaiterBusy(t *testing.T) {
	inBubble(t, Options{}, func(w *world) {
		w.set("me", point("a/1", ""))
		w.begin("a/1")
		for range 6000 {
			w.set("me", point("a/1", w.change("a/1", "a/1")))
			time.Sleep(100 * time.Millisecond)
		}
		if got := len(w.take()); got < 120 || got > 152 {
			t.Errorf("woken %d times in ten minutes", got)
		}
		last := w.change("a/1", "a/1")
		w.take()
		time.Sleep(interval)
		if got := len(w.take()); got != 1 {
			t.Errorf("after the last change it was woken %d times", got)
		}
		w.set("me", point("a/1", last))
	})
}

// A watch that was interrupted may show neither that an object came back nor that it
// went again.
func TestWhoeverWasToldOfAnEndIsToldOfTheNextOne(t *testing.T) {
	inBubble(t, Options{}, func(w *world) {
		version := w.change("0/0", "")
		w.set("a", point("0/0", version))
		w.begin("0/0")
		w.expect("")
		w.remove("0/0", "0/0")
		w.expect("a")
		// It is made anew and seen, and goes again, before the watch comes back.
		w.set("a", point("0/0", w.change("0/0", "")))
		w.expect("")
		w.counter++
		delete(w.versions, object{"0", "0"})
		w.begin("0/0")
		w.expect("a")
		w.begin("0/0")
		w.expect("")
	})
}
