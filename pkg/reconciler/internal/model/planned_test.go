// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

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
