// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"
	"os"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/slice"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(env.Main(m, env.Options{}))
}

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

// plans counts the plans of all histories, which are explored in no fixed order.
var plans atomic.Int64

// checkFunction checks a plan as a function of its input: the order of lists makes no
// difference, knowing less never removes more, and neither does the clock. Long runs
// check one plan in eight.
func checkFunction(s *State, in plan.Input, p plan.Plan) {
	if !testing.Short() && plans.Add(1)%8 != 0 {
		return
	}
	recorded, live := slices.Clone(in.Recorded), maps.Clone(in.Live)
	reversed := in
	reversed.Desired, reversed.Recorded, reversed.ManagedTypes = backwards(in.Desired), backwards(in.Recorded), backwards(in.ManagedTypes)
	if other := again(s, reversed); !reflect.DeepEqual(p, other) {
		s.violate("P1/P4 function: the order of the input makes a difference:\n%s\ninstead of\n%s", other, p)
	}
	for key := range live {
		poor := in
		poor.Live = maps.Clone(in.Live)
		poor.Live[key] = plan.Observation{Message: "the server is busy", NotServed: key.Group == customGroup}
		blind := again(s, poor)
		for _, removed := range removals(blind) {
			if removed == key || !slices.Contains(removals(p), removed) {
				s.violate("P3 unknown: without a read of %s, %s is removed", key, removed)
			}
		}
		for _, item := range in.Recorded {
			_, stays := itemOf(p.Inventory, plan.KeyOf(item))
			if _, kept := itemOf(blind.Inventory, plan.KeyOf(item)); stays && !kept {
				s.violate("P3 unknown: without a read of %s, %s is dropped from the record", key, plan.KeyOf(item))
			}
		}
	}
	later := in
	later.Now = in.Now.Add(1e6 * time.Hour)
	for _, removed := range removals(again(s, later)) {
		if !slices.Contains(removals(p), removed) {
			s.violate("P8 clock: %s is removed only because time has passed", removed)
		}
	}
	if !reflect.DeepEqual(recorded, in.Recorded) || !reflect.DeepEqual(live, in.Live) {
		s.violate("P1 function: planning changed its input")
	}
}

func again(s *State, in plan.Input) plan.Plan {
	p, err := plan.Next(in)
	if err != nil {
		s.violate("the input of a plan contradicts itself: %v", err)
	}
	return p
}

func backwards[T any](list []T) []T {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}

// removals are the objects that a plan removes.
func removals(p plan.Plan) []plan.Key {
	var keys []plan.Key
	for _, step := range p.Steps {
		if step.Verb == plan.VerbDelete || step.Verb == plan.VerbOrphan {
			keys = append(keys, step.Key)
		}
	}
	return keys
}
