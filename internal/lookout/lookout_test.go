// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lookout

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// world is a server whose watches begin and send when the test says so.
type world struct {
	*testing.T
	*Lookout
	lock     sync.Mutex
	woken    []string
	versions map[object]string
	counter  int
}

// newWorld is to be used in a bubble.
func newWorld(t *testing.T, options Options) *world {
	w := &world{T: t, versions: map[object]string{}, counter: 10}
	options.Wake = func(who types.NamespacedName) {
		w.lock.Lock()
		defer w.lock.Unlock()
		w.woken = append(w.woken, who.Name)
	}
	w.Lookout = newLookout(options, func(ctx context.Context, at place, f *feed) { <-ctx.Done() })
	t.Cleanup(w.Close)
	return w
}

// watches are the places that are watched.
func (w *world) watches() string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	var texts []string
	for at, f := range w.Lookout.feeds {
		if f.idle == nil {
			texts = append(texts, written(at))
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

func (w *world) feed(text string) *feed {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.Lookout.feeds[read(text)]
	if f == nil {
		w.Fatalf("%s is not watched", text)
	}
	return f
}

// begin lets a watch show what is there.
func (w *world) begin(text string) {
	w.Helper()
	f := w.feed(text)
	f.replace(w.shown(f), strconv.Itoa(w.counter))
}

func (w *world) shown(f *feed) map[object]string {
	shown := map[object]string{}
	for o, version := range w.versions {
		if f.shows(place{secrets, o.namespace, o.name}) {
			shown[o] = version
		}
	}
	return shown
}

// change writes an object and lets the watch of a place send it, if there is one named.
func (w *world) change(text, via string) string {
	w.Helper()
	w.counter++
	at, version := read(text), strconv.Itoa(w.counter)
	o := object{at.namespace, at.name}
	w.versions[o] = version
	if via != "" {
		w.feed(via).set(o, version, version)
	}
	return version
}

func (w *world) remove(text, via string) {
	w.Helper()
	w.counter++
	at := read(text)
	o := object{at.namespace, at.name}
	delete(w.versions, o)
	w.feed(via).set(o, "", strconv.Itoa(w.counter))
}

func (w *world) set(who string, points ...Point) {
	w.Set(types.NamespacedName{Name: who}, points)
}

func point(text, seen string) Point {
	at := read(text)
	return Point{Type: secrets, Namespace: at.namespace, Name: at.name, Seen: seen}
}

// take returns who was woken since the last time.
func (w *world) take() []string {
	synctest.Wait()
	w.lock.Lock()
	defer w.lock.Unlock()
	woken := w.woken
	w.woken = nil
	return woken
}

// wakes is take after those are woken who are about to be, in order.
func (w *world) wakes() string {
	time.Sleep(settle)
	woken := w.take()
	slices.Sort(woken)
	return strings.Join(woken, " ")
}

func (w *world) expect(wakes string) {
	w.Helper()
	if got := w.wakes(); got != wakes {
		w.Errorf("woken: %q, want %q", got, wakes)
	}
}

func inBubble(t *testing.T, options Options, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(newWorld(t, options)) })
}

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

func TestMoreObjectsThanTheLimitAreOneWatchAndFewerAreWatchedOneByOneAgain(t *testing.T) {
	inBubble(t, Options{PerNamespace: 4}, func(w *world) {
		var points []Point
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
		w.feed("a/*").refused()
		if got := w.watches(); got != "a/* a/1 a/2" {
			t.Errorf("never allowed: %s", got)
		}
		w.begin("a/*")
		if got := w.watches(); got != "a/*" {
			t.Errorf("allowed: %s", got)
		}
		w.feed("a/*").refused()
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

// Whatever happens, and however late the watches are: when all is quiet, everybody
// has seen what is there.
func TestInTheEndEverybodyHasSeenWhatIsThere(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		inBubble(t, Options{PerNamespace: 3, PerType: 4, Total: 8, Linger: time.Second}, func(w *world) { w.live(random) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// live lets waiters, writers and watches do as they please, and then come to rest.
func (w *world) live(random *rand.Rand) {
	seen, depends := map[string]map[string]string{}, map[string][]string{}
	pass := func(who string) {
		seen[who] = map[string]string{}
		var points []Point
		for _, text := range depends[who] {
			version := w.versions[object{read(text).namespace, read(text).name}]
			seen[who][text] = version
			points = append(points, point(text, version))
		}
		if random.IntN(3) == 0 && len(depends[who]) > 0 { // it changes under the hands of the pass
			w.write(random, depends[who][0])
		}
		w.set(who, points...)
	}
	for step := range 300 {
		switch who, text := fmt.Sprint(random.IntN(4)), fmt.Sprintf("%d/%d", random.IntN(2), random.IntN(4)); random.IntN(6) {
		case 0:
			depends[who] = append(slices.Clone(depends[who]), text)
			pass(who)
		case 1:
			depends[who] = nil
			pass(who)
		case 2:
			time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
		case 3:
			w.catchUp(random)
		default:
			w.write(random, text)
		}
		if step%7 == 0 {
			w.pass(pass)
		}
	}
	for range 40 {
		w.catchUp(nil)
		time.Sleep(interval)
		w.pass(pass)
	}
	for who, all := range seen {
		for text, version := range all {
			if now := w.versions[object{read(text).namespace, read(text).name}]; now != version {
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
	if o := (object{read(text).namespace, read(text).name}); random.IntN(3) == 0 {
		delete(w.versions, o)
	} else {
		w.versions[o] = strconv.Itoa(w.counter)
	}
}

// pass lets those make a pass who were woken.
func (w *world) pass(pass func(string)) {
	for _, who := range w.take() {
		pass(who)
	}
}

// catchUp lets some watches, or all, show what is there, as lists or as events.
func (w *world) catchUp(random *rand.Rand) {
	w.mu.Lock()
	feeds := slices.Collect(maps.Values(w.Lookout.feeds))
	w.mu.Unlock()
	for _, f := range feeds {
		choice := 2
		if random != nil {
			choice = random.IntN(4)
		}
		switch choice {
		case 0:
			f.refused()
		case 1: // it is late
		default:
			f.replace(w.shown(f), strconv.Itoa(w.counter))
		}
	}
}
