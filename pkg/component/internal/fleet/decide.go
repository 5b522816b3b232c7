// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// State is the state of a component in a roll-out.
type State string

const (
	// Done is a component that has the version, or to which the roll-out does nothing.
	Done State = "Done"
	// Waiting is a component that has an earlier version, and starts as soon as it may.
	Waiting State = "Waiting"
	// Unable is a component that has an earlier version, and cannot start: its reconcile ends before it could, or the revision is not
	// approved. Other components do not wait for it, unless it is a canary.
	Unable State = "Unable"
	// Updating is a component that has started, and is not ready yet.
	Updating State = "Updating"
	// Failed is a component that was ready with an earlier version, and that the version has broken.
	Failed State = "Failed"
	// Pinned is a component that keeps its version, or is suspended.
	Pinned State = "Pinned"
)

// Member is a component of a fleet.
type Member struct {
	State State
	// Canary is a component that is updated before other components.
	Canary bool
	// ReadyAt is when a component that is Done became ready with the version; zero if the version was not rolled out to it.
	ReadyAt time.Time
	// Why is the reason why a component is Failed.
	Why string
	// said: the component has the condition RolloutStopped.
	said bool
	// requested: the component was requested because it is its turn, and has not asked since.
	requested bool
}

// members are all components of an operator.
type members map[types.NamespacedName]Member

// Limits bound the speed of a roll-out.
type Limits struct {
	// Canaries selects the components that are updated first.
	Canaries labels.Selector
	// MaxUnavailable is how many components may be Updating or Failed for the next one to start, or which percentage of all components.
	MaxUnavailable intstr.IntOrString
	// Pause is the least time between a component that became ready and the next start.
	Pause time.Duration
}

var maximum = regexp.MustCompile(`^([1-9][0-9]*|"(100|[1-9][0-9]?)%")$`)

// Validate returns all mistakes in the option Rollout.
func (l Limits) Validate() error {
	var errs []error
	value := l.MaxUnavailable.String()
	if l.MaxUnavailable.Type == intstr.String {
		value = strconv.Quote(value)
	}
	if !maximum.MatchString(value) {
		errs = append(errs, fmt.Errorf("option Rollout.MaxUnavailable %s: must be a number of at least 1, or a percentage from 1%% to 100%%", value))
	}
	if l.Pause < 0 {
		errs = append(errs, fmt.Errorf("option Rollout.Pause %s: must not be negative", l.Pause))
	}
	return errors.Join(errs...)
}

// Max returns how many components may be unavailable in a fleet of a size. A percentage is rounded down, to at least 1.
func (l Limits) Max(size int) int {
	if l.MaxUnavailable.Type == intstr.String {
		percent, _ := strconv.Atoi(strings.TrimSuffix(l.MaxUnavailable.StrVal, "%")) // it is valid
		return max(size*percent/100, 1)
	}
	return max(int(l.MaxUnavailable.IntVal), 1)
}

// decision is the decision for the state of a fleet.
type decision struct {
	// Start are the components that may start now, in their order.
	Start []types.NamespacedName
	// After is when more may start although nothing else happens; 0 if none may.
	After time.Duration
	// Stopped: nothing starts any more before a user does something, although components wait.
	Stopped bool
	// Waits is how many components have an earlier version and are to be updated.
	Waits int
	// Failed are the components that failed, in their order.
	Failed []types.NamespacedName
	// Max is how many components may be unavailable.
	Max int
}

// decide returns which components may start. It is pure. As long as a canary is not done, only canaries start. Of the waiting
// components, the first by namespace and name start.
func (m members) decide(limits Limits, now time.Time) decision {
	all, canaries, lastReady := map[State][]types.NamespacedName{}, map[State][]types.NamespacedName{}, time.Time{}
	for key, c := range m {
		if all[c.State] = append(all[c.State], key); c.Canary {
			canaries[c.State] = append(canaries[c.State], key)
		}
		if c.ReadyAt.After(lastReady) && !c.ReadyAt.After(now.Add(time.Second)) { // a status may have been forged
			lastReady = c.ReadyAt
		}
	}
	d := decision{Max: limits.Max(len(m)), Waits: len(all[Waiting]) + len(all[Unable]), Failed: all[Failed]}
	slices.SortFunc(d.Failed, compare)
	moving, failed := len(canaries[Waiting])+len(canaries[Updating]), len(canaries[Failed])
	d.Stopped = d.Waits > 0 && (len(d.Failed) >= d.Max || failed > 0 && moving == 0)
	candidates := all[Waiting]
	if moving+failed+len(canaries[Unable]) > 0 { // a canary is not done
		candidates = canaries[Waiting]
	}
	free := min(d.Max-len(all[Updating])-len(d.Failed), len(candidates))
	if free <= 0 {
		return d
	}
	if rest := lastReady.Add(limits.Pause).Sub(now); !lastReady.IsZero() && rest > 0 {
		d.After = rest
		return d
	}
	slices.SortFunc(candidates, compare)
	d.Start = candidates[:free]
	return d
}

// compare is the order in which components start.
func compare(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
