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

// requestsOf counts the requests of an operator without disturbances.
func requestsOf(t *testing.T, s story, crash bool) int {
	t.Helper()
	g := newGate()
	p := newBed(t).play(s)
	p.startOperator(g)
	p.mayCrash = crash
	s.play(p)
	n := len(g.Requests())
	p.finish("a")
	return n
}

// TestNoDeletionAndNoAdditionIsLostInACrashAtAnyRequest kills the process before
// and after every request of every story, to the API server and to the receiver, and
// starts it again.
func TestNoDeletionAndNoAdditionIsLostInACrashAtAnyRequest(t *testing.T) {
	part := slice.FromEnvironment(t)
	ran, died, index := 0, 0, 0
	for _, s := range stories {
		count := requestsOf(t, s, true)
		for at := 1; at <= count; at++ {
			for _, after := range []bool{false, true} {
				index++
				if !part.Has(index) {
					continue
				}
				ran++
				t.Run(fmt.Sprintf("%s, request %d, answered %t", s.name, at, after), func(t *testing.T) {
					p := newBed(t).play(s)
					p.startOperator(&wire.Gate{At: at, After: after, Counts: isOfAPass})
					p.mayCrash = true
					s.play(p)
					p.revive()
					if p.lives > 0 {
						died++
					}
					p.finish()
				})
			}
		}
	}
	t.Logf("%d cases, the process died in %d of them", ran, died)
	if died < ran*8/10 {
		t.Errorf("only %d of %d cases died", died, ran)
	}
}

// TestWritesOfOtherClientsBetweenTwoRequestsLoseNothing lets another client label,
// hold or delete the object before and after every request of every story.
func TestWritesOfOtherClientsBetweenTwoRequestsLoseNothing(t *testing.T) {
	part := slice.FromEnvironment(t)
	ran, index := 0, 0
	for _, s := range stories {
		count := requestsOf(t, s, false)
		for at := 1; at <= count; at++ {
			for _, after := range []bool{false, true} {
				for _, other := range disturbances {
					index++
					if !part.Has(index) {
						continue
					}
					ran++
					t.Run(fmt.Sprintf("%s, %s at request %d, answered %t", s.name, other.name, at, after), func(t *testing.T) {
						p := newBed(t).play(s)
						p.mayDelete = other.name == "deletion"
						p.startOperator(&wire.Gate{At: at, After: after, Happens: func() error { other.write(p); return nil }, Counts: isOfAPass})
						s.play(p)
						p.finish("a")
					})
				}
			}
		}
	}
	t.Logf("%d cases", ran)
}

// TestTwoReplicasAtOnceLoseNothing stops one of two processes before and after every
// request of every story, lets the other one see the story to its end, and then lets the
// first one go on with what it had in mind.
func TestTwoReplicasAtOnceLoseNothing(t *testing.T) {
	part := slice.FromEnvironment(t)
	ran, stops, index := 0, 0, 0
	for _, s := range stories {
		count := requestsOf(t, s, false)
		for at := 1; at <= count; at++ {
			for _, after := range []bool{false, true} {
				index++
				if !part.Has(index) {
					continue
				}
				ran++
				t.Run(fmt.Sprintf("%s, request %d, answered %t", s.name, at, after), func(t *testing.T) {
					paused := make(chan struct{})
					resume, stopped := sync.OnceFunc(func() { close(paused) }), atomic.Bool{}
					p := newBed(t).play(s)
					g := newGate()
					p.startOperator(g)
					p.operator("b", nil)
					p.rehearse("a", "b")
					t.Cleanup(resume) // whatever happens, before the operators are stopped
					g.Aim(at, after, func() error { stopped.Store(true); <-paused; return nil })
					s.play(p)
					resume()
					p.finish("a", "b")
					if stopped.Load() {
						stops++
					}
				})
			}
		}
	}
	t.Logf("%d cases, one replica was stopped in %d of them", ran, stops)
	if stops < ran/2 {
		t.Errorf("in only %d of %d cases a replica was stopped", stops, ran)
	}
}
