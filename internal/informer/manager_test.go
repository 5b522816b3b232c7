// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestAnOwnerIsNotifiedOnceOfEachChangeAndNotOfWhatItSaw(t *testing.T) {
	inBubble(t, Options{}, func(w *fakeServer) {
		observed := w.change("a/1", "")
		w.set("me", reference("a/1", observed), reference("a/2", ""))
		w.list("a/1")
		w.list("a/2")
		w.expect("")
		observed = w.change("a/1", "a/1")
		w.expect("me")
		w.list("a/1") // as after a broken watch
		w.expect("")
		w.set("me", reference("a/1", observed), reference("a/2", ""))
		w.expect("")
		missing := w.change("a/2", "a/2")
		w.expect("me")
		w.set("me", reference("a/1", observed), reference("a/2", missing))
		w.remove("a/1", "a/1")
		w.expect("me")
		w.set("me", reference("a/1", ""), reference("a/2", missing))
		w.expect("")
	})
}

func TestAWatchThatLagsBehindDoesNotNotifyOverAndOver(t *testing.T) {
	inBubble(t, Options{}, func(w *fakeServer) {
		old := w.change("a/1", "")
		w.set("me", reference("a/1", old))
		w.list("a/1")
		// The owner reads that it has gone, the watch still shows it.
		for range 100 {
			w.set("me", reference("a/1", ""))
		}
		w.expect("me")
		for range 10 {
			w.set("me", reference("a/1", ""))
			w.expect("")
		}
		// The owner reads the next one, the watch still shows the first.
		w.set("me", reference("a/1", w.change("a/1", "")))
		w.expect("")
	})
}

func TestAnOwnerWithoutReferencesIsNotNotifiedAndItsWatchesEndAfterAWhile(t *testing.T) {
	inBubble(t, Options{}, func(w *fakeServer) {
		w.set("me", reference("a/1", ""))
		w.list("a/1")
		w.change("a/1", "a/1")
		w.set("me")
		w.expect("")
		if got := w.Stats(); got != (Stats{Watches: 1, Synced: 1}) {
			t.Errorf("%+v", got)
		}
		time.Sleep(29 * time.Second)
		w.set("you", reference("a/1", "11"))
		time.Sleep(time.Minute)
		if got := w.Stats(); got != (Stats{Watches: 1, Synced: 1, Owners: 1}) {
			t.Errorf("it ended although it was needed again: %+v", got)
		}
		w.set("you")
		time.Sleep(31 * time.Second)
		if got := w.Stats(); got != (Stats{}) || len(w.subscriptions) > 0 {
			t.Errorf("%+v, %d wanted", got, len(w.subscriptions))
		}
	})
}

func TestAnOwnerThatRefersToAllOfATypeIsNotifiedWhenTheWatchStartsAndOfEveryChange(t *testing.T) {
	inBubble(t, Options{}, func(w *fakeServer) {
		all, gone := reference("*/*", ""), reference("*/*", "")
		gone.DeletionOnly = true
		w.change("a/1", "")
		w.set("all", all)
		w.set("gone", gone)
		w.list("*/*")
		w.notified()
		w.set("all", all)
		w.set("gone", gone)
		w.expect("")
		w.change("a/2", "*/*")
		w.expect("all")
		w.remove("a/1", "*/*")
		w.expect("all gone")
		delete(w.versions, types.NamespacedName{Namespace: "a", Name: "2"})
		w.list("*/*") // it has gone while the watch was broken
		w.expect("all gone")
		w.set("late", all)
		w.expect("late")
	})
}

func TestAnObjectThatChangesAllTheTimeDoesNotKeepItsOwnerBusy(t *testing.T) {
	inBubble(t, Options{}, func(w *fakeServer) {
		w.set("me", reference("a/1", ""))
		w.list("a/1")
		for range 6000 {
			w.set("me", reference("a/1", w.change("a/1", "a/1")))
			time.Sleep(100 * time.Millisecond)
		}
		if got := len(w.drain()); got < 120 || got > 152 {
			t.Errorf("notified %d times in ten minutes", got)
		}
		last := w.change("a/1", "a/1")
		w.drain()
		time.Sleep(interval)
		if got := len(w.drain()); got != 1 {
			t.Errorf("after the last change it was notified %d times", got)
		}
		w.set("me", reference("a/1", last))
	})
}

func TestAWideWatchThatIsRefusedDoesNotEndTheNarrowOnes(t *testing.T) {
	inBubble(t, Options{PerNamespace: 2}, func(w *fakeServer) {
		w.set("me", reference("a/1", ""), reference("a/2", ""), reference("a/3", ""))
		w.informer("a/*").unsync()
		if got := w.watches(); got != "a/* a/1 a/2" {
			t.Errorf("never allowed: %s", got)
		}
		w.list("a/*")
		if got := w.watches(); got != "a/*" {
			t.Errorf("allowed: %s", got)
		}
		w.informer("a/*").unsync()
		if got := w.watches(); got != "a/* a/1 a/2" {
			t.Errorf("not allowed any more: %s", got)
		}
	})
}

// Whatever happens, and however late the watches are: when all is quiet, each owner
// has read the latest state.
// A timer that fires while it is being stopped must not end a watch that is idle again.
func TestATimerThatWasStoppedTooLateEndsNoWatch(t *testing.T) {
	inBubble(t, Options{Linger: time.Minute}, func(w *fakeServer) {
		w.set("x", reference("ns/a", ""))
		i := w.informer("ns/a")
		w.set("x")
		late := i.idle
		w.set("x", reference("ns/a", ""))
		w.set("x")
		w.expire(i, &late)
		if i.ended {
			t.Error("the watch is ended")
		}
		if w.expire(i, &i.idle); !i.ended {
			t.Error("the watch is not ended when it has been idle for long enough")
		}
	})
}

func TestInTheEndEachOwnerHasReadTheLatestState(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		inBubble(t, Options{PerNamespace: 3, PerType: 4, Total: 8, Linger: time.Second}, func(w *fakeServer) { w.live(random) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// live lets owners, writers and watches do as they please, and then come to rest.
func (w *fakeServer) live(random *rand.Rand) {
	observed, depends := map[string]map[string]string{}, map[string][]string{}
	reconcile := func(owner string) {
		observed[owner] = map[string]string{}
		var references []Reference
		for _, text := range depends[owner] {
			version := w.versions[read(text).object()]
			observed[owner][text] = version
			references = append(references, reference(text, version))
		}
		if random.IntN(3) == 0 && len(depends[owner]) > 0 { // it changes during the reconcile
			w.write(random, depends[owner][0])
		}
		w.set(owner, references...)
	}
	for step := range 300 {
		switch owner, text := fmt.Sprint(random.IntN(4)), fmt.Sprintf("%d/%d", random.IntN(2), random.IntN(4)); random.IntN(7) {
		case 0:
			depends[owner] = append(slices.Clone(depends[owner]), text)
			reconcile(owner)
		case 1:
			depends[owner] = nil
			reconcile(owner)
		case 2:
			time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
		case 3:
			w.catchUp(random)
		case 4:
			if random.IntN(4) == 0 {
				w.goBack(random)
				w.catchUp(nil) // the watches of such a storage end, and list anew
			}
		default:
			w.write(random, text)
		}
		if step%7 == 0 {
			w.reconcile(reconcile)
		}
	}
	for range 40 {
		w.catchUp(nil)
		time.Sleep(interval)
		w.reconcile(reconcile)
	}
	for owner, all := range observed {
		for text, version := range all {
			if now := w.versions[read(text).object()]; now != version {
				w.Errorf("%s saw %s at %q, and it is at %q", owner, text, version, now)
			}
		}
	}
	if got := w.Stats(); got.Watches > 8 {
		w.Errorf("%+v", got)
	}
}

func (w *fakeServer) write(random *rand.Rand, text string) {
	w.counter++
	if o := read(text).object(); random.IntN(3) == 0 {
		delete(w.versions, o)
	} else {
		w.versions[o] = strconv.Itoa(w.counter)
	}
}

// goBack restores the storage to a while ago, and lets the watches see it at some time.
func (w *fakeServer) goBack(random *rand.Rand) {
	w.counter = max(w.counter-random.IntN(30), 10)
	for o, version := range w.versions {
		if number, _ := strconv.Atoi(version); number <= w.counter {
			continue
		}
		if delete(w.versions, o); random.IntN(2) == 0 {
			w.versions[o] = strconv.Itoa(w.counter - random.IntN(5))
		}
	}
}

// reconcile reconciles the owners that were notified.
func (w *fakeServer) reconcile(reconcile func(string)) {
	for _, owner := range w.drain() {
		reconcile(owner)
	}
}

// catchUp lets some watches, or all, show what is there, as lists or as events.
func (w *fakeServer) catchUp(random *rand.Rand) {
	w.mu.Lock()
	informers := slices.Collect(maps.Values(w.Manager.informers))
	w.mu.Unlock()
	for _, f := range informers {
		choice := 2
		if random != nil {
			choice = random.IntN(4)
		}
		switch choice {
		case 0:
			f.unsync()
		case 1: // it is late
		default:
			f.Listing()
			f.Replace(w.shown(f), strconv.Itoa(w.counter), true)
		}
	}
}

// restore puts back what a storage held at version 3000: no object but a/1.
func (w *fakeServer) restore() {
	w.counter = 3000
	clear(w.versions)
	w.versions[types.NamespacedName{Namespace: "a", Name: "1"}] = "2990"
}

func TestWhenAStorageWasRestoredEachOwnerIsNotifiedOnceAndOfWhatChangesThen(t *testing.T) {
	gone := reference("*/*", "")
	gone.DeletionOnly = true
	for name, tc := range map[string]struct {
		// before runs while the storage is as it was, about objects that the owners have read.
		before func(w *fakeServer)
		watch  string
		// all are the owners that are notified after the restore, edited those that an edit notifies.
		all, edited string
	}{
		"the watch comes back":      {func(w *fakeServer) { w.list("a/1") }, "a/1", "me you", "me you"},
		"the watch starts only now": {func(*fakeServer) {}, "a/1", "me you", "me you"},
		"another watch is there in its place": {func(w *fakeServer) {
			w.list("a/1")
			w.set("me")
			w.set("you")
			time.Sleep(31 * time.Second)
			w.set("me", reference("a/1", "5001"))
			w.set("you", reference("a/1", "5001"))
		}, "a/1", "me you", "me you"},
		"it was refused for a while": {func(w *fakeServer) {
			w.list("a/1")
			w.informer("a/1").unsync()
		}, "a/1", "me you", "me you"},
		"all objects are watched": {func(w *fakeServer) {
			w.set("all", reference("*/*", ""))
			w.set("gone", gone)
			w.list("*/*")
		}, "*/*", "all gone me you", "all me you"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(w *fakeServer) {
				w.counter = 5000
				observed := w.change("a/1", "")
				w.set("me", reference("a/1", observed))
				w.set("you", reference("a/1", observed))
				tc.before(w)
				w.notified()

				w.restore()
				w.list(tc.watch)
				w.expect(tc.all)
				w.list(tc.watch) // another list is no other storage
				w.expect("")
				w.set("me", reference("a/1", "2990"))
				w.expect("")
				// You have run no reconcile since.
				w.change("a/1", tc.watch)
				w.expect(tc.edited)
				w.set("me", reference("a/1", strconv.Itoa(w.counter)))
				w.remove("a/1", tc.watch)
				w.expect(tc.all)
			})
		})
	}
}

// What an owner has read since a list was asked for is newer than the list, in the same storage.
func TestAReadThatOvertakesTheListDoesNotMakeItARestoredOne(t *testing.T) {
	inBubble(t, Options{}, func(w *fakeServer) {
		old := w.change("a/1", "")
		w.set("me", reference("a/1", old))
		w.set("you", reference("a/1", old), reference("a/2", ""))
		w.list("a/1")
		f, list, progress := w.informer("a/1"), w.shown(w.informer("a/1")), strconv.Itoa(w.counter)
		f.Listing()
		w.set("me", reference("a/1", w.change("a/1", "")))
		f.Replace(list, progress, true)
		w.expect("")
		w.list("a/1")
		w.expect("you")
	})
}
