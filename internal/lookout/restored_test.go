// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lookout

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// restore puts back what a storage held at version 3000: no object but a/1.
func (w *world) restore() {
	w.counter = 3000
	clear(w.versions)
	w.versions[object{"a", "1"}] = "2990"
}

func TestWhenAStorageWasRestoredEverybodyIsWokenOnceAndForWhatChangesThen(t *testing.T) {
	gone := point("*/*", "")
	gone.Vanishing = true
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
			w.feed("a/1").refused()
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
				// You have made no pass since.
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
		w.versions[object{"a", "1"}] = "3001"
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

// What a waiter has read since a list was asked for is newer than the list, in the same storage.
func TestAReadThatOvertakesTheListDoesNotMakeItARestoredOne(t *testing.T) {
	inBubble(t, Options{}, func(w *world) {
		old := w.change("a/1", "")
		w.set("me", point("a/1", old))
		w.set("you", point("a/1", old), point("a/2", ""))
		w.begin("a/1")
		f, list, progress := w.feed("a/1"), w.shown(w.feed("a/1")), strconv.Itoa(w.counter)
		f.asks()
		w.set("me", point("a/1", w.change("a/1", "")))
		f.replace(list, progress)
		w.expect("")
		w.begin("a/1")
		w.expect("you")
	})
}

// The server is in the place of one that was restored: the waiter has seen a version
// that there is not yet.
func TestAServerThatIsBehindWhatAWaiterSawIsNoticedHoweverItIsAsked(t *testing.T) {
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
