// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/corbel-run/corbel/test/slice"
)

// staleScenarios are what TestStaleWatches goes through.
var staleScenarios = slices.Concat(lifeScenarios, typeScenarios[:2], purgeScenarios()[1:2], handoverScenarios(), strangerScenarios())

// TestStaleWatches lets the watches of an operator be late, broken or wrong while it
// has work to do and while somebody else is at work on its objects. Each story has to
// come to the end that it has when the watches tell the truth: without a crash, and
// with a crash at every request, whose successor begins with watches of the same fault.
func TestStaleWatches(t *testing.T) {
	index := 0
	for _, s := range staleScenarios {
		first := index
		index += len(watchFaults)
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			cases := slice.FromEnvironment(t)
			reference := s.play(t, newGuillotine(0, false), nil, nil)
			for i, fault := range watchFaults {
				if t.Failed() || !cases.Has(first+i) {
					continue
				}
				t.Run(fault.name, func(t *testing.T) {
					t.Parallel()
					s.playEach(t, fault, reference, cases)
				})
			}
		})
	}
}

// playEach goes through the story with a fault: without a crash, then with one at
// each point of the slice.
func (s *scenario) playEach(t *testing.T, fault *watchFault, reference *ending, cases slice.Slice) {
	t.Helper()
	began := time.Now()
	life := s.play(t, newGuillotine(0, false), fault, reference)
	if t.Failed() {
		return
	}
	points, ran, crashed := pointsOf(life.requests), 0, atomic.Int64{}
	t.Run("die", func(t *testing.T) {
		for i, p := range points {
			if !cases.Has(i) {
				continue
			}
			ran++
			t.Run(p.String(), func(t *testing.T) {
				t.Parallel()
				if s.play(t, newGuillotine(p.at, p.after), fault, reference).crashed {
					crashed.Add(1)
				}
			})
		}
	})
	t.Logf("%d requests, %d points, %d of them run, %d crashed, %s",
		len(life.requests), len(points), ran, crashed.Load(), time.Since(began).Round(time.Second))
}
