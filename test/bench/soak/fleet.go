// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/corbel-run/corbel/test/bench/operator"
	"github.com/corbel-run/corbel/test/bench/subject"
)

// maxUnavailable is the percentage of the components that a version may make unavailable.
const maxUnavailable = 10

// rolledOut is how many versions are rolled out in the first part of the time; the last one is not broken.
const rolledOut = 5

// fleet is what a run with roll-outs knows. A nil fleet is a run without.
type fleet struct {
	mu      sync.Mutex
	version string
	// touched are the components that were edited or created since the version was rolled out: it reaches them at once.
	touched map[string]bool
}

func newFleet(wanted bool) *fleet {
	if !wanted {
		return nil
	}
	return &fleet{version: "0", touched: map[string]bool{}}
}

// schedule is when the parts of a run end, in tenths of the duration.
type schedule struct{ storm, early, restart int }

// schedule gives roll-outs more time before the operator is measured that has to live to the end.
func (f *fleet) schedule() schedule {
	if f == nil {
		return schedule{3, 4, 7}
	}
	return schedule{6, 7, 8}
}

// requeue is how often each component is reconciled without a change.
func (f *fleet) requeue() time.Duration {
	if f == nil {
		return requeue
	}
	return 10 * requeue
}

// current is the version that was rolled out last.
func (f *fleet) current() string {
	if f == nil {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.version
}

// order adds the version to an order to connect.
func (f *fleet) order(order subject.Order) subject.Order {
	if f != nil {
		order.Chart, order.MaxUnavailable = f.current(), fmt.Sprintf("%d%%", maxUnavailable)
	}
	return order
}

// touch notes a component that is edited or created.
func (f *fleet) touch(name string) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.touched[name] = true
}

// begin begins with a version.
func (f *fleet) begin(version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version, f.touched = version, map[string]bool{}
}

func (f *fleet) touchedSince() map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.touched)
}

// rollOuts replaces the operators by those of further versions, one after the other, while components are disturbed and
// processes killed. What each version has reached is counted before the next.
func (s *soak) rollOuts(ctx context.Context) error {
	if s.fleet == nil {
		return nil
	}
	for i := range rolledOut {
		version := fmt.Sprintf("%d", i+1)
		if i%2 == 1 {
			version = operator.Broken + "-" + version
		}
		// One that is not ready yet does not count among those that the version makes unavailable.
		w, err := s.observe(ctx)
		if err != nil {
			return err
		}
		unready := map[string]bool{}
		for i := range w.loads {
			if !w.loads[i].Status.IsReady() {
				unready[w.loads[i].Name] = true
			}
		}
		s.fleet.begin(version)
		s.operators.killAll()
		s.Logf("version %s is rolled out; %d components are not ready", version, len(unready))
		if err := s.disturbUntil(ctx, s.started.Add(s.share(s.fleet.schedule().storm)*time.Duration(i+1)/rolledOut)); err != nil {
			return err
		}
		if err := s.countReached(ctx, version, unready); err != nil {
			return err
		}
	}
	return nil
}

// countReached counts the components that a version has reached.
func (s *soak) countReached(ctx context.Context, version string, unready map[string]bool) error {
	w, err := s.observe(ctx)
	if err != nil {
		return err
	}
	reached := map[string]bool{}
	for key, object := range w.objects {
		if object.Data["version"] == version {
			reached[key.Name[:strings.LastIndex(key.Name, "-")]] = true
		}
	}
	touched := s.fleet.touchedSince()
	alone := 0 // neither edited nor unready before
	for name := range reached {
		if !touched[name] && !unready[name] {
			alone++
		}
	}
	text := fmt.Sprintf("version %s reached %d of %d components; %d of them were neither edited nor unready before", version, len(reached), s.Components, alone)
	s.outcome.RollOuts = append(s.outcome.RollOuts, text)
	s.Logf("%s", text)
	if len(reached) == 0 || strings.HasPrefix(version, operator.Broken) && alone > s.Components*maxUnavailable/100 {
		s.outcome.Spread = append(s.outcome.Spread, text)
	}
	return nil
}
