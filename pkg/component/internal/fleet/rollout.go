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

// rollout counts the states of all components, and admits the next ones. A list fills in the states when the first component has to wait,
// and each reconcile adds its result. The methods are safe for concurrent use.
type rollout struct {
	limits  *Limits
	now     func() time.Time
	request func(client.ObjectKey) // a full reconcile
	list    func(ctx context.Context, generator string) (members, error)

	loading sync.Mutex // is held during the list
	mu      sync.Mutex // guards the fields below
	round
	// timer requests the components that may start after a pause.
	timer *time.Timer
}

// round is the roll-out of one generator. The generator may change while the process runs.
type round struct {
	generator string
	members   members
	// loaded: members are all components. Until then, they are the components that this process has reconciled.
	loaded bool
	// gone are the components that went during the list.
	gone map[client.ObjectKey]bool
	// last is the last decision.
	last decision
}

// load fills in all components for the roll-out of a generator, once.
func (r *rollout) load(ctx context.Context, generator string) error {
	r.loading.Lock()
	defer r.loading.Unlock()
	r.mu.Lock()
	if r.generator != generator {
		r.round = round{generator: generator, members: members{}}
	}
	loaded := r.loaded
	if !loaded {
		r.gone = map[client.ObjectKey]bool{}
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
	for key, m := range all {
		if _, known := r.members[key]; !known && !r.gone[key] { // the result of a reconcile is not older than the list
			r.members[key] = m
		}
	}
	r.loaded, r.gone = true, nil
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
	// A component that failed, or was admitted and could not record it, has a place already.
	admitted := m.State == Failed || r.members[key].State == Updating
	if !admitted {
		r.members[key] = m
		admitted = slices.Contains(r.members.decide(*r.limits, r.now()).Start, key)
	}
	if admitted {
		m.State, m.Why = Updating, ""
		r.members[key] = m
	}
	r.decide(key)
	return admitted, nil
}

// set notes the state of a component after a reconcile with a generator. The message says why the roll-out has stopped, if it has and
// the component failed. First: no component that failed has the condition.
func (r *rollout) set(generator string, key client.ObjectKey, m Member) (message string, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.generator = cmp.Or(r.generator, generator); r.generator != generator {
		return "", false
	}
	before, known := r.members[key]
	m.requested = before.requested && m.State == Waiting
	m.said = m.State == Failed && (m.said || before.said)
	if !known || before != m {
		r.members[key] = m
		r.decide(key)
	}
	if m.State != Failed {
		return "", false
	}
	first = !slices.ContainsFunc(r.last.Failed, func(failed client.ObjectKey) bool { return r.members[failed].said })
	m.said = r.last.Stopped
	if r.members[key] = m; !m.said {
		return "", false
	}
	return r.message(key.Namespace), first
}

// remove forgets a component that is gone.
func (r *rollout) remove(key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone != nil {
		r.gone[key] = true
	}
	if _, known := r.members[key]; known {
		delete(r.members, key)
		r.decide(key)
	}
}

// decide requests the components that may start and, if the roll-out stops or goes on, those that failed except the current one.
func (r *rollout) decide(current client.ObjectKey) {
	if !r.loaded {
		return
	}
	before, last := r.last, r.members.decide(*r.limits, r.now())
	r.last = last
	for _, key := range last.Start {
		if m := r.members[key]; !m.requested {
			m.requested = true
			r.members[key] = m
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
func (r *rollout) message(namespace string) string {
	named := slices.DeleteFunc(slices.Clone(r.last.Failed), func(key client.ObjectKey) bool { return key.Namespace != namespace })
	why := verdict.FirstSentences(named, 0, func(key client.ObjectKey) string {
		name := strings.TrimPrefix(key.String(), "/")
		if reason := r.members[key].Why; reason != "" {
			name += ": " + reason
		}
		return name
	})
	return fmt.Sprintf("the roll-out of the new version has stopped, and %s not updated: %s failed, and at most %d may be unavailable: %s",
		strings.Replace(verdict.Count(r.last.Waits, "component")+" are", "component are", "component is", 1), verdict.Count(len(r.last.Failed), "component"), r.last.Max, why)
}
