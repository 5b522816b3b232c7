// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/slice"
)

// story is a random history of one object: we write it, another client does, the
// watch is late, repeats itself, or is cut, and answers are late.
type story struct {
	*bed
	random *rand.Rand
	uids   int
	// pending are our requests that the server has done.
	pending []func()
	// byOthers counts what others did and what is not known to be ours.
	byOthers int
	// knows is what the owner was shown last.
	knows plan.Observation
	// newest is the version of the newest answer, dead are uids that we were
	// reported to be gone.
	newest        string
	dead          map[string]bool
	notifications int
	log           []string
}

func TestWhateverTheOrderTheRecordIsNotOlderThanOurAnswers(t *testing.T) {
	cases := slice.FromEnvironment(t)
	stories, notified := 0, 0
	for seed := range uint64(6400) { // enough that each slice shows something
		if !cases.Has(int(seed)) {
			continue
		}
		stories++
		inBubble(t, Options{}, func(b *bed) {
			s := &story{bed: b, random: rand.New(rand.NewPCG(seed, 1)), dead: map[string]bool{}}
			s.play(seed)
			notified += s.notifications
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if notified < stories/2 {
		t.Errorf("only %d changes were notified: these stories show nothing", notified)
	}
}

func (s *story) play(seed uint64) {
	s.server.put(object("shop", "pod", "uid0", "a", "content 0"))
	s.keep("a", inShop)
	s.knows = reduced(s.live())
	s.server.hold()
	alone := seed%4 == 0 // no other client does anything
	for step := range 40 {
		s.step(step, alone)
		s.check()
	}
	s.server.release()
	for len(s.pending) > 0 {
		s.answer()
		s.check()
	}
	advance(time.Minute)
	s.check()
	s.end()
	if s.Failed() {
		for _, line := range s.log {
			s.Log(line)
		}
	}
}

func (s *story) step(step int, alone bool) {
	text := fmt.Sprintf("content %d", s.random.IntN(3))
	switch choice := s.random.IntN(12); {
	case choice < 3:
		s.write(text)
	case choice < 5 && !alone:
		s.otherClient(text)
	case choice < 8:
		s.log = append(s.log, "an event")
		s.server.deliver(-1)
	case choice == 8:
		s.log = append(s.log, "an event again")
		s.server.deliver(s.random.IntN(step + 1))
	case choice < 11 && len(s.pending) > 0:
		s.answer()
	case choice == 11 && s.random.IntN(4) == 0:
		s.log = append(s.log, "cut")
		if s.random.IntN(2) == 0 {
			s.server.set(func(server *server) { server.compacted = server.version })
		}
		s.server.cut()
		advance(5 * time.Second)
	}
	synctest.Wait()
}

func (s *story) live() *unstructured.Unstructured {
	return s.server.objects[objectName{"shop", "pod"}]
}

// write sends a request of ours; its answer comes later.
func (s *story) write(text string) {
	done := s.store.Writing("a", inShop, "pod")
	var outcome *plan.Observation
	switch live := s.live(); {
	case live == nil:
		s.uids++
		outcome = answer(s.server.put(object("shop", "pod", fmt.Sprintf("uid%d", s.uids), "a", text)))
		s.log = append(s.log, "we create "+outcome.ResourceVersion+" "+text)
	case s.random.IntN(5) == 0:
		s.server.remove("shop", "pod")
		outcome = gone(string(live.GetUID()))
		s.log = append(s.log, "we delete "+string(live.GetUID()))
	default:
		outcome = answer(s.server.change("shop", "pod", func(o *unstructured.Unstructured) {
			o.Object["spec"] = text
			o.SetLabels(map[string]string{label: "a"})
		}))
		s.log = append(s.log, "we update "+outcome.ResourceVersion+" "+text)
	}
	lost := s.random.IntN(8) == 0
	s.pending = append(s.pending, func() {
		if lost {
			s.log = append(s.log, "an answer is lost")
			s.byOthers++
			done(nil)
			return
		}
		s.log = append(s.log, fmt.Sprintf("an answer: %s %s", outcome.ResourceVersion, outcome.ObservedHash))
		s.learn(outcome)
		done(outcome)
	})
}

// learn notes what an answer shows the owner, unless it knows newer things.
func (s *story) learn(outcome *plan.Observation) {
	if outcome.Existence == plan.Absent {
		s.dead[string(outcome.UID)] = true
		if s.knows.UID == outcome.UID {
			s.knows = plan.Observation{}
		}
		return
	}
	if s.newest != "" && before(outcome.ResourceVersion, s.newest) {
		return
	}
	s.newest = outcome.ResourceVersion
	if s.knows.ResourceVersion != "" && before(outcome.ResourceVersion, s.knows.ResourceVersion) {
		return
	}
	if s.knows = *outcome; s.dead[string(outcome.UID)] {
		s.knows = plan.Observation{}
	}
}

func (s *story) answer() {
	at := s.random.IntN(len(s.pending))
	done := s.pending[at]
	s.pending = append(s.pending[:at], s.pending[at+1:]...)
	done()
}

// otherClient changes the object.
func (s *story) otherClient(text string) {
	s.byOthers++
	switch live := s.live(); {
	case live == nil:
		s.uids++
		s.server.put(object("shop", "pod", fmt.Sprintf("uid%d", s.uids), "a", text))
	case s.random.IntN(5) == 0:
		s.server.remove("shop", "pod")
	case s.random.IntN(5) == 0:
		s.server.change("shop", "pod", func(o *unstructured.Unstructured) { o.SetLabels(nil) })
	default:
		s.server.change("shop", "pod", func(o *unstructured.Unstructured) {
			o.Object["spec"] = text
			o.SetLabels(map[string]string{label: "a"})
		})
	}
	s.log = append(s.log, fmt.Sprintf("another client: version %d %s", s.server.version, text))
}

// check holds the record against the answers.
func (s *story) check() {
	changes := s.notified.drain()
	s.notifications += len(changes)
	if len(changes) > 0 {
		s.log = append(s.log, fmt.Sprint(changes))
	}
	o, known, _ := s.store.Look(inShop, "pod")
	if len(changes) > 0 {
		s.knows = o // a notified owner reads the object
	}
	if s.notifications > s.byOthers {
		s.Errorf("notified %d times, although others did no more than %d things", s.notifications, s.byOthers)
	}
	if known && s.dead[string(o.UID)] {
		s.Errorf("%s came back", o.UID)
	}
	if known && s.newest != "" && before(o.ResourceVersion, s.newest) {
		s.Errorf("the record is of version %s, an answer was of %s", o.ResourceVersion, s.newest)
	}
}

// end compares the record with the server, when all events were delivered.
func (s *story) end() {
	o, known, watched := s.store.Look(inShop, "pod")
	live := s.live()
	switch {
	case !watched:
		s.Error("not watched")
	case !labelled(live) && known:
		s.Errorf("there is a record of version %s, and no such object", o.ResourceVersion)
	case labelled(live) && o.ResourceVersion != live.GetResourceVersion():
		s.Errorf("the record is of version %q, the object of %s", o.ResourceVersion, live.GetResourceVersion())
	}
	if s.knows.ObservedHash != o.ObservedHash || s.knows.UID != o.UID {
		s.Errorf("the owner knows %q of %s, but there is %q of %s", s.knows.ObservedHash, s.knows.UID, o.ObservedHash, o.UID)
	}
}

// TestManyAtOnce is for the race detector, and shows that what all of them did
// is known in the end.
func TestManyAtOnce(t *testing.T) {
	inBubble(t, Options{Linger: time.Second, Retry: time.Second}, func(b *bed) {
		const workers, steps = 6, 60
		at := func(worker int) (place Place, name, owner string) {
			place = Place{Resource: pods, Namespace: fmt.Sprintf("ns-%d", worker%3)}
			return place, fmt.Sprintf("pod-%d", worker), fmt.Sprintf("owner-%d", worker)
		}
		for worker := range workers {
			place, name, owner := at(worker)
			b.server.put(object(place.Namespace, name, name, owner, "0"))
		}
		var group sync.WaitGroup
		for worker := range workers {
			place, name, owner := at(worker)
			group.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(worker)))
				for step := range steps {
					b.store.Keep(owner, []Place{place})
					switch random.IntN(7) {
					case 0:
						b.store.Keep(owner, nil)
					case 1:
						b.server.cut()
					case 2:
						b.server.set(func(s *server) { s.refuse = forbid("") })
					case 3:
						b.server.set(func(s *server) { s.refuse = nil })
					default:
						done := b.store.Writing(owner, place, name)
						live := b.server.change(place.Namespace, name, func(o *unstructured.Unstructured) { o.Object["spec"] = fmt.Sprint(step) })
						done(answer(live))
						b.store.Read(owner, place, name, reduced(live))
					}
					b.store.Look(place, name)
					sizesOf(b.store)
					time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
				}
				b.server.set(func(s *server) { s.refuse = nil })
				b.store.Keep(owner, []Place{place})
			})
		}
		group.Wait()
		advance(time.Minute)
		for at, live := range b.server.objects {
			content, _, _ := unstructured.NestedString(live.Object, "spec")
			b.sees(Place{Resource: pods, Namespace: at.namespace}, at.name, content)
		}
		b.expect("only the owners did anything")
		if stats := sizesOf(b.store); stats.reflectors != 1 || stats.writing != 0 || stats.records != workers {
			t.Errorf("%+v", stats)
		}
		synctest.Wait()
	})
}
