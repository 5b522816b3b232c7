// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"sync/atomic"
	"testing"

	"github.com/corbel-run/corbel/test/slice"
)

// slowly is set if the race detector makes everything ten times slower.
var slowly bool

// disturbances is how many disturbances a history has at most.
func disturbances() int {
	switch {
	case testing.Short():
		return 2
	case slowly:
		return 3
	default:
		return 4
	}
}

// No history of a small world breaks an invariant. A slice of the enumeration
// goes on from one in N of the first disturbances; make modelcheck from all.
func TestInvariantsHoldInEverySmallHistory(t *testing.T) {
	var states, moves atomic.Int64
	cases, first := slice.FromEnvironment(t), 0
	t.Run("configurations", func(t *testing.T) {
		for _, config := range configs {
			config.Disturbances = disturbances()
			m, offset := New(config), first
			m.allowed, m.planned = func(index int) bool { return cases.Has(offset + index) }, checkFunction
			first += len(config.Acts)
			t.Run(config.Name, func(t *testing.T) {
				t.Parallel()
				report := m.Explore(0)
				t.Logf("%d states, %d moves, depth %d", report.States, report.Moves, report.Depth)
				states.Add(int64(report.States))
				moves.Add(int64(report.Moves))
				if err := report.Error(); err != "" {
					t.Error(err)
				}
			})
		}
	})
	t.Logf("%d configurations, %d disturbances: %d states, %d moves", len(configs), disturbances(), states.Load(), moves.Load())
}
