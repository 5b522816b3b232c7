// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
)

// rollout counts the states of all components, and admits the next ones. The states follow from the statuses of the components:
// a list fills in all states when the first component has to wait, and each reconcile adds its result. The methods are safe for
// concurrent use.
type rollout struct {
	limits  Limits
	now     func() time.Time
	request func(client.ObjectKey) // a full reconcile
	list    func(ctx context.Context, generator string) (map[client.ObjectKey]listed, error)

	loading sync.Mutex // is held during the list

	mu    sync.Mutex // guards the fields below
	round round
	// timer requests the components that may start after a pause.
	timer *time.Timer
}

// round is the roll-out of one generator. The generator may change while the process runs.
type round struct {
	generator string
	members   members
	// loaded: members are all components. Until then they are those that this process has reconciled.
	loaded bool
	// gone are the components that went during the list.
	gone map[client.ObjectKey]bool
	// requested are the components that were requested because it is their turn, and have not asked since.
	requested map[client.ObjectKey]bool
	// said are the components that have the condition RolloutStopped.
	said map[client.ObjectKey]bool
	// last is the last decision.
	last decision
}

func newRound(generator string) round {
	return round{generator: generator, members: members{}, requested: map[client.ObjectKey]bool{}, said: map[client.ObjectKey]bool{}}
}

// load fills in all components for the roll-out of a generator, once.
func (r *rollout) load(ctx context.Context, generator string) error {
	r.loading.Lock()
	defer r.loading.Unlock()
	r.mu.Lock()
	if r.round.generator != generator {
		r.round = newRound(generator)
	}
	loaded := r.round.loaded
	if !loaded {
		r.round.gone = map[client.ObjectKey]bool{}
	}
	r.mu.Unlock()
	if loaded {
		return nil
	}
	all, err := r.list(ctx, generator)
	if err != nil {
		return fmt.Errorf("list the components for the roll-out: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, c := range all {
		// The result of a reconcile is not older than the list.
		if _, known := r.round.members[key]; known || r.round.gone[key] {
			continue
		}
		r.round.members[key] = c.Member
		if c.said {
			r.round.said[key] = true
		}
	}
	r.round.loaded, r.round.gone = true, nil
	r.decide(client.ObjectKey{})
	return nil
}

// mayStart reports whether a component that has an earlier version may start now; if so, it counts as Updating.
func (r *rollout) mayStart(ctx context.Context, generator string, key client.ObjectKey, m Member) (bool, error) {
	if err := r.load(ctx, generator); err != nil {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.round.requested, key)
	// A component that failed, or was admitted and could not record it, has a place already.
	admitted := m.State == Failed || r.round.members[key].State == Updating
	if !admitted {
		r.round.members[key] = m
		admitted = slices.Contains(r.round.members.decide(r.limits, r.now()).Start, key)
	}
	if admitted {
		m.State, m.Why = Updating, ""
		r.round.members[key] = m
	}
	r.decide(key)
	return admitted, nil
}

// set notes the state of a component after a reconcile with a generator. The message says why the roll-out has stopped, if it has and
// the component failed. Said: the component has the condition. First: no other component that failed has it.
func (r *rollout) set(generator string, key client.ObjectKey, m Member, said bool) (message string, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.round.generator = cmp.Or(r.round.generator, generator); r.round.generator != generator {
		return "", false
	}
	if before, known := r.round.members[key]; !known || before != m {
		r.round.members[key] = m
		if m.State != Waiting {
			delete(r.round.requested, key)
		}
		r.decide(key)
	}
	if m.State != Failed || !r.round.last.Stopped {
		delete(r.round.said, key)
		return "", false
	}
	if said {
		r.round.said[key] = true
	}
	first = !slices.ContainsFunc(r.round.last.Failed, func(other client.ObjectKey) bool { return r.round.said[other] })
	r.round.said[key] = true
	return r.round.message(key.Namespace), first
}

// remove forgets a component that is gone.
func (r *rollout) remove(key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.round.gone != nil {
		r.round.gone[key] = true
	}
	delete(r.round.requested, key)
	delete(r.round.said, key)
	if _, known := r.round.members[key]; known {
		delete(r.round.members, key)
		r.decide(key)
	}
}

// decide requests the components that may start and, if the roll-out stops or goes on, the components that failed; but not
// the component that is being reconciled. The lock is held.
func (r *rollout) decide(current client.ObjectKey) {
	if !r.round.loaded {
		return
	}
	before, last := r.round.last, r.round.members.decide(r.limits, r.now())
	r.round.last = last
	for _, key := range last.Start {
		if !r.round.requested[key] {
			r.round.requested[key] = true
			r.request(key)
		}
	}
	if last.Stopped != before.Stopped || last.Stopped && !slices.Equal(last.Failed, before.Failed) {
		for _, key := range last.Failed {
			if key != current {
				r.request(key)
			}
		}
	}
	if r.timer != nil {
		r.timer.Stop()
	}
	if last.After > 0 {
		r.timer = time.AfterFunc(last.After, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.decide(client.ObjectKey{})
		})
	}
}

// message says why the roll-out has stopped, for a namespace: it names no component of another namespace.
func (r *round) message(namespace string) string {
	named := slices.DeleteFunc(slices.Clone(r.last.Failed), func(key client.ObjectKey) bool { return key.Namespace != namespace })
	why := verdict.FirstSentences(named, 0, func(key client.ObjectKey) string {
		name := strings.TrimPrefix(key.String(), "/")
		if reason := r.members[key].Why; reason != "" {
			name += ": " + reason
		}
		return name
	})
	components := func(n int) string {
		if n == 1 {
			return "1 component"
		}
		return fmt.Sprintf("%d components", n)
	}
	return fmt.Sprintf("the roll-out of the new version has stopped, and %s not updated: %s failed, and at most %d may be unavailable: %s",
		strings.Replace(components(r.last.Waits)+" are", "component are", "component is", 1), components(len(r.last.Failed)), r.last.Max, why)
}
