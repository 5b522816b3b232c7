// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestAnOwnerIsNotifiedOnceOfEachChangeAndNotOfWhatItSaw(t *testing.T) {
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

func TestAChangeBetweenTheReadAndTheBeginningOfTheWatchNotifies(t *testing.T) {
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

func TestManyChangesAtOnceAreOneNotificationForEachOwner(t *testing.T) {
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

func TestAWatchThatLagsBehindDoesNotNotifyOverAndOver(t *testing.T) {
	inBubble(t, Options{}, func(w *world) {
		old := w.change("a/1", "")
		w.set("me", point("a/1", old))
		w.begin("a/1")
		// The owner reads that it has gone, the watch still shows it.
		for range 100 {
			w.set("me", point("a/1", ""))
		}
		w.expect("me")
		for range 10 {
			w.set("me", point("a/1", ""))
			w.expect("")
		}
		// The owner reads the next one, the watch still shows the first.
		w.set("me", point("a/1", w.change("a/1", "")))
		w.expect("")
	})
}

func TestAnOwnerWithoutReferencesIsNotNotifiedAndItsWatchesEndAfterAWhile(t *testing.T) {
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

func TestAnOwnerThatRefersToAllOfATypeIsNotifiedWhenTheWatchBeginsAndOfEveryChange(t *testing.T) {
	inBubble(t, Options{}, func(w *world) {
		all, gone := point("*/*", ""), point("*/*", "")
		gone.DeletionOnly = true
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
		delete(w.versions, types.NamespacedName{Namespace: "a", Name: "2"})
		w.begin("*/*") // it has gone while the watch was broken
		w.expect("all gone")
		w.set("late", all)
		w.expect("late")
	})
}

func TestAnObjectThatChangesAllTheTimeDoesNotKeepItsOwnerBusy(t *testing.T) {
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
func TestAnOwnerThatWasNotifiedOfADeletionIsNotifiedOfTheNextOne(t *testing.T) {
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
		delete(w.versions, types.NamespacedName{Namespace: "0", Name: "0"})
		w.begin("0/0")
		w.expect("a")
		w.begin("0/0")
		w.expect("")
	})
}

func TestMoreObjectsThanTheLimitAreOneWatchAndFewerAreWatchedOneByOneAgain(t *testing.T) {
	inBubble(t, Options{PerNamespace: 4}, func(w *world) {
		var points []Reference
		for i := range 6 {
			points = append(points, point(fmt.Sprintf("a/%d", i), ""))
		}
		w.set("me", points[:4]...)
		for i := range 4 {
			w.begin(fmt.Sprintf("a/%d", i))
		}
		w.set("me", points...)
		if got := w.watches(); got != "a/* a/0 a/1 a/2 a/3" {
			t.Errorf("before the wide one shows anything: %s", got)
		}
		w.change("a/5", "")
		w.begin("a/*")
		w.expect("me")
		points[5].Seen = "11"
		w.set("me", points...)
		if got := w.watches(); got != "a/*" {
			t.Errorf("too many: %s", got)
		}
		w.change("a/unrelated", "a/*")
		w.expect("")
		w.change("a/0", "a/*")
		w.expect("me")
		points[0].Seen = "13"
		w.set("me", points[:3]...)
		if got := w.watches(); got != "a/0 a/1 a/2" {
			t.Errorf("few again: %s", got)
		}
		w.begin("a/0")
		w.expect("")
		w.change("a/1", "a/1")
		w.expect("me")
	})
}

func TestAWideWatchThatIsRefusedLeavesTheNarrowOnes(t *testing.T) {
	inBubble(t, Options{PerNamespace: 2}, func(w *world) {
		w.set("me", point("a/1", ""), point("a/2", ""), point("a/3", ""))
		w.informer("a/*").unsync()
		if got := w.watches(); got != "a/* a/1 a/2" {
			t.Errorf("never allowed: %s", got)
		}
		w.begin("a/*")
		if got := w.watches(); got != "a/*" {
			t.Errorf("allowed: %s", got)
		}
		w.informer("a/*").unsync()
		if got := w.watches(); got != "a/* a/1 a/2" {
			t.Errorf("not allowed any more: %s", got)
		}
	})
}

func TestThereAreNeverMoreWatchesThanAllowedAndRoomIsUsedWhenItIsThere(t *testing.T) {
	inBubble(t, Options{Total: 3}, func(w *world) {
		for i := range 6 {
			w.set(fmt.Sprint(i), point(fmt.Sprintf("%d/x", i), ""))
		}
		if got := w.watches(); got != "0/x 1/x 2/x" {
			t.Errorf("watched: %s", got)
		}
		w.set("0")
		w.set("1")
		time.Sleep(time.Minute)
		if got := len(strings.Fields(w.watches())); got != 3 {
			w.Errorf("%d watches, although there is room", got)
		}
	})
}

// Whatever happens, and however late the watches are: when all is quiet, each owner
// has seen what is there.
func TestInTheEndEachOwnerHasSeenWhatIsThere(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		inBubble(t, Options{PerNamespace: 3, PerType: 4, Total: 8, Linger: time.Second}, func(w *world) { w.live(random) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// live lets owners, writers and watches do as they please, and then come to rest.
func (w *world) live(random *rand.Rand) {
	seen, depends := map[string]map[string]string{}, map[string][]string{}
	reconcile := func(who string) {
		seen[who] = map[string]string{}
		var points []Reference
		for _, text := range depends[who] {
			version := w.versions[read(text).object()]
			seen[who][text] = version
			points = append(points, point(text, version))
		}
		if random.IntN(3) == 0 && len(depends[who]) > 0 { // it changes under the hands of the reconcile
			w.write(random, depends[who][0])
		}
		w.set(who, points...)
	}
	for step := range 300 {
		switch who, text := fmt.Sprint(random.IntN(4)), fmt.Sprintf("%d/%d", random.IntN(2), random.IntN(4)); random.IntN(7) {
		case 0:
			depends[who] = append(slices.Clone(depends[who]), text)
			reconcile(who)
		case 1:
			depends[who] = nil
			reconcile(who)
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
	for who, all := range seen {
		for text, version := range all {
			if now := w.versions[read(text).object()]; now != version {
				w.Errorf("%s saw %s at %q, and it is at %q", who, text, version, now)
			}
		}
	}
	if got := w.Stats(); got.Watches > 8 {
		w.Errorf("%+v", got)
	}
}

func (w *world) write(random *rand.Rand, text string) {
	w.counter++
	if o := read(text).object(); random.IntN(3) == 0 {
		delete(w.versions, o)
	} else {
		w.versions[o] = strconv.Itoa(w.counter)
	}
}

// goBack restores the storage to a while ago, and lets the watches see it at some time.
func (w *world) goBack(random *rand.Rand) {
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

// reconcile reconciles the waiters that were woken.
func (w *world) reconcile(reconcile func(string)) {
	for _, who := range w.take() {
		reconcile(who)
	}
}

// catchUp lets some watches, or all, show what is there, as lists or as events.
func (w *world) catchUp(random *rand.Rand) {
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
func (w *world) restore() {
	w.counter = 3000
	clear(w.versions)
	w.versions[types.NamespacedName{Namespace: "a", Name: "1"}] = "2990"
}

func TestWhenAStorageWasRestoredEachOwnerIsNotifiedOnceAndOfWhatChangesThen(t *testing.T) {
	gone := point("*/*", "")
	gone.DeletionOnly = true
	for name, tc := range map[string]struct {
		// before is done while the storage is as it was, about objects that were seen.
		before func(w *world)
		watch  string
		// wakes are all, edits those whom an edit wakes.
		wakes, edits string
	}{
		"the watch comes back":      {func(w *world) { w.begin("a/1") }, "a/1", "me you", "me you"},
		"the watch begins only now": {func(*world) {}, "a/1", "me you", "me you"},
		"another watch is there in its place": {func(w *world) {
			w.begin("a/1")
			w.set("me")
			w.set("you")
			time.Sleep(31 * time.Second)
			w.set("me", point("a/1", "5001"))
			w.set("you", point("a/1", "5001"))
		}, "a/1", "me you", "me you"},
		"it was refused for a while": {func(w *world) {
			w.begin("a/1")
			w.informer("a/1").unsync()
		}, "a/1", "me you", "me you"},
		"all objects are watched": {func(w *world) {
			w.set("all", point("*/*", ""))
			w.set("gone", gone)
			w.begin("*/*")
		}, "*/*", "all gone me you", "all me you"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(w *world) {
				w.counter = 5000
				seen := w.change("a/1", "")
				w.set("me", point("a/1", seen))
				w.set("you", point("a/1", seen))
				tc.before(w)
				w.wakes()

				w.restore()
				w.begin(tc.watch)
				w.expect(tc.wakes)
				w.begin(tc.watch) // another list is no other storage
				w.expect("")
				w.set("me", point("a/1", "2990"))
				w.expect("")
				// You have run no reconcile since.
				w.change("a/1", tc.watch)
				w.expect(tc.edits)
				w.set("me", point("a/1", strconv.Itoa(w.counter)))
				w.remove("a/1", tc.watch)
				w.expect(tc.wakes)
			})
		})
	}
}

// Versions are given anew after a restore, perhaps to other content.
func TestTheSameVersionInARestoredStorageIsAnotherOne(t *testing.T) {
	inBubble(t, Options{}, func(w *world) {
		w.counter = 5000
		w.versions[types.NamespacedName{Namespace: "a", Name: "1"}] = "3001"
		w.set("me", point("a/1", "3001"), point("a/2", w.change("a/2", "")))
		w.begin("a/1")
		w.begin("a/2")
		w.expect("")
		w.restore()
		w.change("a/1", "")
		w.begin("a/1")
		w.expect("me")
	})
}

// If there is no list until versions are as high as they were, the object itself shows it.
func TestAVersionThatTheWatchShouldHavePassedIsThatOfARestoredStorage(t *testing.T) {
	inBubble(t, Options{}, func(w *world) {
		w.counter = 5000
		w.set("me", point("a/1", w.change("a/1", "")))
		w.begin("a/1")
		w.expect("")
		w.restore()
		w.counter = 6000
		w.begin("a/1")
		w.expect("me")
		w.begin("a/1")
		w.expect("")
	})
}

// What an owner has read since a list was asked for is newer than the list, in the same storage.
func TestAReadThatOvertakesTheListDoesNotMakeItARestoredOne(t *testing.T) {
	inBubble(t, Options{}, func(w *world) {
		old := w.change("a/1", "")
		w.set("me", point("a/1", old))
		w.set("you", point("a/1", old), point("a/2", ""))
		w.begin("a/1")
		f, list, progress := w.informer("a/1"), w.shown(w.informer("a/1")), strconv.Itoa(w.counter)
		f.Listing()
		w.set("me", point("a/1", w.change("a/1", "")))
		f.Replace(list, progress, true)
		w.expect("")
		w.begin("a/1")
		w.expect("you")
	})
}

// The server is in the place of one that was restored: the owner has seen a version
// that there is not yet.
func TestAServerThatIsBehindWhatAnOwnerSawIsNoticedHoweverItIsAsked(t *testing.T) {
	for name, answer := range map[string]func(*http.Request) *http.Response{
		"InAWatch": nil,
		"InAList": func(request *http.Request) *http.Response {
			if request.URL.Query().Get("sendInitialEvents") == "" {
				return nil
			}
			return status(request, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.wire.answer = answer
			s.grant()
			seen := s.create("creds")
			s.set(map[string]string{"creds": seen + "000"})
			s.expectWake("a version that there is not yet")
			s.set(map[string]string{"creds": seen})
			s.quiet()
			s.update("creds", "1")
			s.expectWake("an update")
		})
	}
}
