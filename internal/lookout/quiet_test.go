// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lookout

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

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
		switch who, text := fmt.Sprint(random.IntN(4)), fmt.Sprintf("%d/%d", random.IntN(2), random.IntN(4)); random.IntN(7) {
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
		case 4:
			if random.IntN(4) == 0 {
				w.goBack(random)
				w.catchUp(nil) // the watches of such a storage end, and list anew
			}
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
			f.asks()
			f.replace(w.shown(f), strconv.Itoa(w.counter))
		}
	}
}
