// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/corbel-run/corbel/test/slice"
	"github.com/corbel-run/corbel/test/wire"
)

// enumerate plays each story before and after each of its requests, to the API server and to the receiver, once for each
// disturbance. At least this share of the cases has to meet its request.
func enumerate(t *testing.T, mayCrash bool, all []disturbance, share float64, run func(p *play, d disturbance, at int, after bool) (met bool)) {
	t.Helper()
	part, index, ran, met := slice.FromEnvironment(t), 0, 0, 0
	for _, s := range stories {
		g, p := newGate(), newBed(t).play(s)
		p.startOperator(g)
		p.mayCrash = mayCrash
		s.play(p)
		count := len(g.Requests())
		p.finish("a")
		for at := 1; at <= count; at++ {
			for _, after := range []bool{false, true} {
				for _, d := range all {
					index++
					if !part.Has(index) {
						continue
					}
					ran++
					t.Run(fmt.Sprintf("%s, %s at request %d, answered %t", s.name, d.name, at, after), func(t *testing.T) {
						p := newBed(t).play(s)
						p.mayCrash = mayCrash
						if run(p, d, at, after) {
							met++
						}
					})
				}
			}
		}
	}
	if index == 0 {
		t.Error("no request was counted")
	}
	t.Logf("%d cases, %d of them met their request", ran, met)
	if float64(met) < float64(ran)*share {
		t.Errorf("only %d of %d cases met their request", met, ran)
	}
}

// TestNoDeletionAndNoAdditionIsLostInACrashAtAnyRequest kills the process, and starts it again.
func TestNoDeletionAndNoAdditionIsLostInACrashAtAnyRequest(t *testing.T) {
	enumerate(t, true, []disturbance{{name: "a crash"}}, 0.8, func(p *play, _ disturbance, at int, after bool) bool {
		p.startOperator(&wire.Gate{At: at, After: after, Counts: isOfAPass})
		p.story.play(p)
		p.revive()
		p.finish()
		return p.lives > 0
	})
}

// TestWritesOfOtherClientsBetweenTwoRequestsLoseNothing lets another client label, hold or delete the object.
func TestWritesOfOtherClientsBetweenTwoRequestsLoseNothing(t *testing.T) {
	enumerate(t, false, disturbances, 0.5, func(p *play, d disturbance, at int, after bool) bool {
		p.mayDelete = d.name == "deletion"
		met := atomic.Bool{}
		disturb := func() error {
			met.Store(true)
			d.write(p)
			return nil
		}
		p.startOperator(&wire.Gate{At: at, After: after, Happens: disturb, Counts: isOfAPass})
		p.story.play(p)
		p.finish("a")
		return met.Load()
	})
}

// TestTwoReplicasAtOnceLoseNothing stops one of two processes, lets the other one see the story to its end, and then
// lets the first one go on with what it had in mind.
func TestTwoReplicasAtOnceLoseNothing(t *testing.T) {
	enumerate(t, false, []disturbance{{name: "a stop"}}, 0.5, func(p *play, _ disturbance, at int, after bool) bool {
		paused := make(chan struct{})
		resume, stopped := sync.OnceFunc(func() { close(paused) }), atomic.Bool{}
		g := newGate()
		p.startOperator(g)
		p.operator("b", nil)
		p.rehearse("a", "b")
		p.Cleanup(resume) // whatever happens, before the operators are stopped
		g.Aim(at, after, func() error { stopped.Store(true); <-paused; return nil })
		p.story.play(p)
		resume()
		p.finish("a", "b")
		return stopped.Load()
	})
}
