// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/corbel-run/corbel/test/slice"
)

// staleScenarios are what TestStaleWatches goes through.
var staleScenarios = slices.Concat(
	lifeScenarios, typeScenarios[:4], purgeScenarios()[1:2], handoverScenarios(), otherClientScenarios(), rollbackScenarios,
	approvalScenarios[1:2], // the others change no dependent
)

// TestStaleWatches lets the watches of an operator be late, broken or wrong while it
// has work to do and while another client changes its objects. Each scenario has to
// come to the end that it has when the watches are correct: without a crash, and
// with a crash at every request; its successor starts with watches of the same fault.
// A crash meets each fault of the watches of dependents, and one fault of the watch of components.
// A slice has one fault for each scenario, and one for each of its crashes.
func TestStaleWatches(t *testing.T) {
	t.Parallel()
	for number, s := range staleScenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			cases, ran, crashed := slice.FromEnvironment(t), atomic.Int64{}, atomic.Int64{}
			reference := s.reference(t)
			if t.Failed() {
				return
			}
			t.Run("watches", func(t *testing.T) {
				for i, fault := range watchFaults {
					if !fault.meets(s) {
						continue
					}
					t.Run(fault.name, func(t *testing.T) {
						t.Parallel()
						requests := reference.requests
						if cases.Picks(number, i, len(watchFaults)) {
							ran.Add(1)
							t.Run("without a crash", func(t *testing.T) { requests = s.play(t, newCrasher(0, false), fault, reference).requests })
						}
						if t.Failed() {
							return
						}
						for j, p := range pointsOf(requests) {
							if !cases.Has(j+3*number) || !cases.Picks(j+number, i, len(watchFaults)) || !fault.meetsCrash(i+j+number) {
								continue
							}
							ran.Add(1)
							t.Run(p.String(), func(t *testing.T) {
								t.Parallel()
								if s.play(t, newCrasher(p.at, p.after), fault, reference).crashed {
									crashed.Add(1)
								}
							})
						}
					})
				}
			})
			t.Logf("%d requests without a fault; %d cases run, %d crashed", len(reference.requests), ran.Load(), crashed.Load())
		})
	}
}
