// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package componenttest

import (
	"fmt"
	"testing"
)

// TestCrashes goes through the lifecycle of TestLifecycle once without a crash and then once for
// each write of the operator with a crash there: before the write is sent, and between its commit
// and the answer. The crashed operator sends nothing any more; its successor has to reach the same
// end. The status of the component is among the writes; events, leases, dry runs and requests
// before the component exists are not.
//
// Reads are no points of a crash: the state of the server is the same as after the write before
// them.
//
// Of the cases only one in every is run, by turns before and after a write; 0 or 1 runs all. Each is a sub-test, which can be run
// alone by its name. A case in which the operator needs fewer writes than without a crash, and
// so does not reach the fatal one, is an ordinary lifecycle.
func (o Operator[T]) TestCrashes(t testing.TB, obj T, edit func(T), every int) {
	t.Helper()
	reference := o.prepare(t, obj).play(t, edit, &connection{}, nil)
	cases, ran, crashed := pointsOf(reference.writes), 0, 0
	for _, p := range oneIn(every, cases) {
		run(t, p.String(), func(t testing.TB) {
			t.Helper()
			ran++
			network := &connection{fatal: p.write, after: p.after}
			defer func() {
				if network.hasCrashed() {
					crashed++
				}
				if t.Failed() {
					t.Logf("the operator crashed %s, %s; %s", p, network.fatalWrite(), alone(t))
				}
			}()
			o.prepare(t, obj).play(t, edit, network, reference)
		})
	}
	t.Logf("%d writes, %d points, %d of them run, %d crashed", reference.writes, len(cases), ran, crashed)
	if ran > 1 && crashed == 0 {
		t.Errorf("the operator crashed in none of %d cases", ran)
	}
}

// point is where an operator crashes.
type point struct {
	write int // counted from 1
	after bool
}

// String is the name of the case.
func (p point) String() string {
	if p.after {
		return fmt.Sprintf("after write %d", p.write)
	}
	return fmt.Sprintf("before write %d", p.write)
}

// pointsOf returns the points of a number of writes.
func pointsOf(writes int) []point {
	points := make([]point, 0, 2*writes)
	for n := range writes {
		points = append(points, point{n + 1, false}, point{n + 1, true})
	}
	return points
}

// oneIn returns one in every points. Points before and after a write alternate, and so do the
// returned ones: with an even step, all would be before a write.
func oneIn(every int, points []point) []point {
	every = max(every, 1)
	var chosen []point
	for n := 0; n < len(points); n += every {
		at := n
		if every%2 == 0 && n/every%2 == 1 {
			at++
		}
		chosen = append(chosen, points[at])
	}
	return chosen
}
