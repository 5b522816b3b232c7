// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lookout

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

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
