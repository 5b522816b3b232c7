// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package informer

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

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/test/check"
)

func TestAnOwnerIsNotifiedOnceOfEachChangeAndNotOfWhatItSaw(t *testing.T) {
	inBubble(t, defaultLimits, func(w *fakeServer) {
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

func TestAnOwnerIsNotNotifiedOfWhatItWrote(t *testing.T) {
	inBubble(t, defaultLimits, func(w *fakeServer) {
		written := w.change("a/1", "")
		w.Add(me, reference("a/1", written)) // the first reference of the owner
		w.list("a/1")
		w.expect("")
		w.Add(me, reference("a/1", w.change("a/1", ""))) // the answer is there before the event
		w.expect("")
		w.change("a/1", "a/1")
		w.expect("me")
		w.set("me", reference("a/2", "")) // the references of the next reconcile do not have it
		w.change("a/1", "a/1")
		w.expect("")
	})
}

func TestAWatchThatLagsBehindDoesNotNotifyOverAndOver(t *testing.T) {
	inBubble(t, defaultLimits, func(w *fakeServer) {
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
	inBubble(t, defaultLimits, func(w *fakeServer) {
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
	inBubble(t, defaultLimits, func(w *fakeServer) {
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
	inBubble(t, defaultLimits, func(w *fakeServer) {
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
	inBubble(t, limits{perNamespace: 2, perType: 250, total: 500, linger: 30 * time.Second}, func(w *fakeServer) {
		w.set("me", reference("a/1", ""), reference("a/2", ""), reference("a/3", ""))
		w.informer("a/*").unsync()
		check.SameNamed(t, "never allowed", "a/* a/1 a/2", w.watches())
		w.list("a/*")
		check.SameNamed(t, "allowed", "a/*", w.watches())
		w.informer("a/*").unsync()
		check.SameNamed(t, "not allowed any more", "a/* a/1 a/2", w.watches())
	})
}

// A timer that fires while it is being stopped must not end a watch that is idle again.
func TestATimerThatWasStoppedTooLateEndsNoWatch(t *testing.T) {
	inBubble(t, limits{perNamespace: 200, perType: 250, total: 500, linger: time.Minute}, func(w *fakeServer) {
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

// Whatever happens, and however late the watches are: when all is quiet, each owner
// has read the latest state.
func TestInTheEndEachOwnerHasReadTheLatestState(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		inBubble(t, limits{perNamespace: 3, perType: 4, total: 8, linger: time.Second}, func(w *fakeServer) { w.live(random) })
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
			inBubble(t, defaultLimits, func(w *fakeServer) {
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
	inBubble(t, defaultLimits, func(w *fakeServer) {
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

// fakeServer is a server with watches that start and send when the test says so.
type fakeServer struct {
	*testing.T
	*Manager
	lock     sync.Mutex
	pending  []string
	versions map[types.NamespacedName]string
	counter  int
}

// newFakeServer is to be used in a bubble.
func newFakeServer(t *testing.T, limits limits) *fakeServer {
	w := &fakeServer{T: t, versions: map[types.NamespacedName]string{}, counter: 10}
	w.Manager = newManager(func(owner types.NamespacedName) {
		w.lock.Lock()
		defer w.lock.Unlock()
		w.pending = append(w.pending, owner.Name)
	}, func(ctx context.Context, _ *informer) { <-ctx.Done() })
	w.limits = limits
	t.Cleanup(w.Close)
	return w
}

// watches are the scopes that are watched.
func (w *fakeServer) watches() string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	var texts []string
	for at, f := range w.Manager.informers {
		if f.idle == nil {
			texts = append(texts, written(at))
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

func (w *fakeServer) informer(text string) *informer {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.Manager.informers[read(text)]
	if f == nil {
		w.Fatalf("%s is not watched", text)
	}
	return f
}

// list lets a watch show what is there.
func (w *fakeServer) list(text string) {
	w.Helper()
	f := w.informer(text)
	f.Listing()
	f.Replace(w.shown(f), strconv.Itoa(w.counter), true)
}

func (w *fakeServer) shown(f *informer) map[types.NamespacedName]string {
	shown := map[types.NamespacedName]string{}
	for o, version := range w.versions {
		if f.scope.includes(scope{secrets, o.Namespace, o.Name}) {
			shown[o] = version
		}
	}
	return shown
}

// change writes an object and lets the watch of a scope send it, if there is one named.
func (w *fakeServer) change(text, via string) string {
	w.Helper()
	w.counter++
	at, version := read(text), strconv.Itoa(w.counter)
	o := at.object()
	w.versions[o] = version
	if via != "" {
		w.informer(via).set(o, version, version)
	}
	return version
}

func (w *fakeServer) remove(text, via string) {
	w.Helper()
	w.counter++
	at := read(text)
	o := at.object()
	delete(w.versions, o)
	w.informer(via).set(o, "", strconv.Itoa(w.counter))
}

func (w *fakeServer) set(owner string, references ...Reference) {
	w.Set(types.NamespacedName{Name: owner}, references)
}

func reference(text, observed string) Reference {
	at := read(text)
	return Reference{Type: secrets, Namespace: at.namespace, Name: at.name, ResourceVersion: observed}
}

// drain returns the owners that were notified since the last call.
func (w *fakeServer) drain() []string {
	synctest.Wait()
	w.lock.Lock()
	defer w.lock.Unlock()
	names := w.pending
	w.pending = nil
	return names
}

// notified returns the owners, sorted, that were notified since the last call, after pending
// notifications were sent.
func (w *fakeServer) notified() string {
	time.Sleep(collect)
	names := w.drain()
	slices.Sort(names)
	return strings.Join(names, " ")
}

func (w *fakeServer) expect(notified string) {
	w.Helper()
	if got := w.notified(); got != notified {
		w.Errorf("notified: %q, want %q", got, notified)
	}
}

func inBubble(t *testing.T, limits limits, f func(w *fakeServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(newFakeServer(t, limits)) })
}

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// written is a scope as namespace/name; * is all.
func written(at scope) string {
	text := func(part string) string { return map[bool]string{true: "*", false: part}[part == ""] }
	return text(at.namespace) + "/" + text(at.name)
}

func read(text string) scope {
	namespace, name, _ := strings.Cut(text, "/")
	return scope{secrets, strings.TrimPrefix(namespace, "*"), strings.TrimPrefix(name, "*")}
}

func TestWiderWatchesReplaceManyNarrowOnesOnlyWhenTheyShowSomething(t *testing.T) {
	for name, test := range map[string]struct {
		wanted, running, synced, want string
	}{
		"nothing":         {},
		"a few":           {wanted: "a/1 b/1", want: "a/1 b/1"},
		"up to the limit": {wanted: "a/1 a/2 a/3 a/4", want: "a/1 a/2 a/3 a/4"},
		"more, before the wide one shows anything":   {wanted: "a/1 a/2 a/3 a/4 a/5", want: "a/* a/1 a/2 a/3 a/4"},
		"those that run go on":                       {wanted: "a/1 a/2 a/3 a/4 a/5", running: "a/5", want: "a/* a/5 a/1 a/2 a/3"},
		"more":                                       {wanted: "a/1 a/2 a/3 a/4 a/5", running: "a/*", synced: "a/*", want: "a/*"},
		"fewer again, but not by much":               {wanted: "a/1 a/2 a/3 a/4", running: "a/*", synced: "a/*", want: "a/*"},
		"fewer again":                                {wanted: "a/1 a/2 a/3", running: "a/*", synced: "a/*", want: "a/1 a/2 a/3"},
		"all of a namespace are asked for":           {wanted: "a/* a/1", want: "a/* a/1"},
		"all of a namespace are shown":               {wanted: "a/* a/1 b/1", running: "a/*", synced: "a/*", want: "a/* b/1"},
		"all are asked for":                          {wanted: "*/* a/1", want: "*/* a/1"},
		"all are shown":                              {wanted: "*/* a/1", running: "*/*", synced: "*/*", want: "*/*"},
		"more namespaces than the limit":             {wanted: "a/1 b/1 c/1 d/1 e/1 f/1 g/1", want: "*/* a/1 b/1 c/1 d/1 e/1 f/1 g/1"},
		"more namespaces than the limit, all shown":  {wanted: "a/1 b/1 c/1 d/1 e/1 f/1 g/1", running: "*/*", synced: "*/*", want: "*/*"},
		"fewer namespaces again":                     {wanted: "a/1 b/1 c/1 d/1 e/1", running: "*/*", synced: "*/*", want: "a/1 b/1 c/1 d/1 e/1"},
		"objects without a namespace, too many":      {wanted: "*/1 */2 */3 */4 */5", want: "*/* */1 */2 */3 */4"},
		"objects without a namespace, all are shown": {wanted: "*/1 */2 */3 */4 */5", running: "*/*", synced: "*/*", want: "*/*"},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := map[scope]bool{}
			for _, text := range strings.Fields(test.wanted) {
				wanted[read(text)] = true
			}
			var got []string
			for _, at := range arrange(secrets, wanted, limits{perNamespace: 4, perType: 6}, func(at scope) watchState {
				return watchState{
					running: strings.Contains(" "+test.running+" ", " "+written(at)+" "),
					synced:  strings.Contains(" "+test.synced+" ", " "+written(at)+" "),
				}
			}) {
				got = append(got, written(at))
			}
			check.Equal(t, test.want, strings.Join(got, " "))
		})
	}
}

func TestWhatIsNewsToAnOwner(t *testing.T) {
	for name, test := range map[string]struct {
		observed          string
		deletionOnly      bool
		version, progress string
		want              bool
	}{
		"as it was observed":                 {observed: "5", version: "5", progress: "9"},
		"newer":                              {observed: "5", version: "7", progress: "7", want: true},
		"the watch lags":                     {observed: "5", version: "4", progress: "4"},
		"not there, as was observed":         {progress: "9"},
		"it appeared":                        {version: "7", progress: "7", want: true},
		"it has gone":                        {observed: "5", progress: "9", want: true},
		"not there yet":                      {observed: "5", progress: "4"},
		"newer, but only its end counts":     {observed: "5", deletionOnly: true, version: "7", progress: "7"},
		"gone, and its end counts":           {observed: "5", deletionOnly: true, progress: "7", want: true},
		"versions that cannot be compared":   {observed: "x", version: "y", progress: "y", want: true},
		"gone, with a progress of some kind": {observed: "5", progress: "x", want: true},
	} {
		mine := &subscription{observed: test.observed, deletionOnly: test.deletionOnly}
		check.SameNamed(t, name, test.want, mine.isNews(test.version, test.progress))
		if mine.isNews(test.version, test.progress) {
			t.Errorf("%s: news twice", name)
		}
	}
}
