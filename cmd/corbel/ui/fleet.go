// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/internal/backoff"
)

// fleet knows the components of all types as long as a page is open, by one watch for each type.
type fleet struct {
	cluster   *cluster
	namespace string

	mu    sync.Mutex
	users int
	end   func() // of the watches; nil if there are none
	idle  *time.Timer
	after time.Duration // without users
	state *fleetState
}

// fleetState is what one run of the watches knows. The mutex of the fleet guards it.
type fleetState struct {
	complete chan struct{} // closed when each type was listed, or failed
	types    map[string]*typeState
	queues   map[*queue]bool
	isDown   bool
	message  string // why it is down
}

// typeState is what is known of a type.
type typeState struct {
	kind    schema.GroupVersionKind
	end     func()
	tried   bool
	items   map[address]componentSummary
	problem string
}

func newFleet(k *cluster, namespace string) *fleet {
	return &fleet{cluster: k, namespace: namespace, after: linger}
}

// linger is how long the watches go on without a page, so that a page that is loaded again is quick.
const linger = 30 * time.Second

// acquire starts the watches, unless they run.
func (f *fleet) acquire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.users++
	if f.idle != nil {
		f.idle.Stop()
		f.idle = nil
	}
	if f.end != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.state = &fleetState{complete: make(chan struct{}), types: map[string]*typeState{}, queues: map[*queue]bool{}}
	state := f.state
	var running sync.WaitGroup
	running.Go(func() { f.run(ctx, state, &running) })
	f.end = func() { cancel(); running.Wait() }
}

// release lets the watches end soon, unless others use them.
func (f *fleet) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users--; f.users == 0 && f.end != nil {
		f.idle = time.AfterFunc(f.after, f.close)
	}
}

// endSoon ends the watches as soon as they are not in use.
func (f *fleet) endSoon() {
	f.mu.Lock()
	f.after = 0
	f.mu.Unlock()
	f.close()
}

// close ends the watches, unless they are in use.
func (f *fleet) close() {
	f.mu.Lock()
	end := f.end
	if f.users > 0 || end == nil {
		f.mu.Unlock()
		return
	}
	f.end, f.state = nil, nil
	f.mu.Unlock()
	end() // without the mutex: the watches need it to end
}

// list returns all components, and what could not be listed. It waits until each type was tried.
func (f *fleet) list(ctx context.Context) (componentList, error) {
	f.mu.Lock()
	state := f.state
	f.mu.Unlock()
	select {
	case <-ctx.Done():
		return componentList{}, ctx.Err()
	case <-state.complete:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	list := componentList{Items: []componentSummary{}, Problems: state.problems()}
	for _, t := range state.types {
		list.Items = slices.AppendSeq(list.Items, maps.Values(t.items))
	}
	if state.isDown && len(list.Items) == 0 {
		return list, fmt.Errorf("the API server cannot be reached: %s", state.message)
	}
	return list, nil
}

// subscribe lets a queue have all changes from now on.
func (f *fleet) subscribe(q *queue) (unsubscribe func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	state := f.state
	state.queues[q] = true
	q.put("connection", event{"connection", connection{OK: !state.isDown, Message: state.message}})
	if !state.isDown {
		q.put("reset", event{"reset", struct{}{}}) // what was read before may be old
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(state.queues, q)
	}
}

// run looks for types of components, and watches each.
func (f *fleet) run(ctx context.Context, state *fleetState, running *sync.WaitGroup) {
	for attempt := 0; ctx.Err() == nil; attempt++ {
		known, err := f.cluster.known(ctx, typesAge)
		if err != nil {
			f.update(state, func() { state.down(err) })
			pause(ctx, backoff.Delay(attempt, retryBase, retryDown))
			continue
		}
		f.update(state, func() {
			if attempt > 0 {
				state.up()
			}
			f.followTypes(ctx, state, running, known)
		})
		attempt = -1
		pause(ctx, typesAge)
	}
}

// followTypes follows the types that there are, and no others.
func (f *fleet) followTypes(ctx context.Context, state *fleetState, running *sync.WaitGroup, known *knownTypes) {
	served := map[string]bool{}
	for _, t := range known.types {
		name := t.String()
		served[name] = true
		next := &typeState{kind: t.GroupVersionKind, items: map[address]componentSummary{}}
		if before := state.types[name]; before != nil {
			if before.kind == next.kind {
				continue
			}
			before.end() // another version is served, of the same components
			next.items, next.problem = before.items, before.problem
		}
		var typeCtx context.Context
		typeCtx, next.end = context.WithCancel(ctx)
		state.types[name] = next
		running.Go(func() { f.follow(typeCtx, state, next, known.reader, t) })
	}
	for name, before := range state.types {
		if !served[name] && !known.isPart {
			before.end()
			state.replace(before, nil)
			state.setProblem(before, "")
			delete(state.types, name)
		}
	}
	state.checkComplete()
}

// Times between attempts.
const (
	retryBase = 250 * time.Millisecond
	retryDown = 3 * time.Second  // to reach the server
	retryMost = 30 * time.Second // of what the server refuses

	retryQuick = 3 // attempts count no more while the server cannot be reached
)

// follow lists and watches the components of a type. After a watch that has ended it lists them again.
func (f *fleet) follow(ctx context.Context, state *fleetState, known *typeState, reader *inspect.Reader, t inspect.Type) {
	update := func(change func()) { // unless the type is not served any more
		f.update(state, func() {
			if ctx.Err() == nil {
				change()
			}
		})
	}
	selection := inspect.Selection{Namespace: f.namespace}
	if !t.Namespaced {
		selection.Namespace = ""
	}
	for attempt := 0; ctx.Err() == nil; attempt++ {
		var listed time.Time
		err := guarded(func() error {
			items := map[address]componentSummary{}
			version, err := reader.List(ctx, t, selection, func(c inspect.Component) error {
				item := componentOf(c)
				items[item.address()] = item
				return nil
			})
			if err != nil {
				return err
			}
			listed = time.Now()
			update(func() {
				state.setProblem(known, "")
				state.replace(known, items)
				state.up()
			})
			return reader.Watch(ctx, t, selection, version, func(e inspect.Event) error {
				update(func() { state.change(known, componentOf(e.Component), e.Deleted) })
				return nil
			})
		})
		if !listed.IsZero() && time.Since(listed) > retryDown { // else a watch that fails at once is tried ever slower
			attempt = 0
		}
		limit := retryMost
		if isDown(err) {
			limit, attempt = retryDown, min(attempt, retryQuick) // what a server refuses that starts is soon tried again
		}
		update(func() {
			switch {
			case isDown(err):
				state.down(err)
			case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err):
				state.replace(known, nil) // the type is gone
			case listed.IsZero():
				state.setProblem(known, fmt.Sprintf("%ss cannot be listed: %v", t.Kind, err))
			}
			known.tried = true
			state.checkComplete()
		})
		pause(ctx, backoff.Delay(attempt, retryBase, limit))
	}
}

// update changes the state, unless its watches have ended.
func (f *fleet) update(state *fleetState, change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state == state {
		change()
	}
}

func (s *fleetState) put(key string, e event) {
	for q := range s.queues {
		q.put(key, e)
	}
}

// problems says which types could not be listed.
func (s *fleetState) problems() []string {
	found := []string{}
	for _, name := range slices.Sorted(maps.Keys(s.types)) {
		if problem := s.types[name].problem; problem != "" {
			found = append(found, problem)
		}
	}
	return found
}

// setProblem notes why a type cannot be listed, or that it can.
func (s *fleetState) setProblem(t *typeState, problem string) {
	if t.problem != problem {
		t.problem = problem
		s.put("problems", event{"problems", s.problems()})
	}
}

// replace makes the components of a type those of a list.
func (s *fleetState) replace(t *typeState, items map[address]componentSummary) {
	for key, known := range t.items {
		if _, ok := items[key]; !ok {
			s.change(t, known, true)
		}
	}
	for _, item := range items {
		s.change(t, item, false)
	}
	t.tried = true
	s.checkComplete()
}

func (s *fleetState) change(t *typeState, item componentSummary, deleted bool) {
	key := item.address()
	if deleted {
		delete(t.items, key)
		s.put("component "+key.String(), event{"component", change{"gone", item.gone()}})
		return
	}
	if t.items[key] == item {
		return // only what is not shown has changed
	}
	t.items[key] = item
	s.put("component "+key.String(), event{"component", change{"set", item}})
}

// checkComplete tells those that wait for the first list that each type was tried.
func (s *fleetState) checkComplete() {
	for _, t := range s.types {
		if !t.tried {
			return
		}
	}
	s.close()
}

func (s *fleetState) close() {
	select {
	case <-s.complete:
	default:
		close(s.complete)
	}
}

// down notes that the server cannot be reached.
func (s *fleetState) down(err error) {
	if s.message = err.Error(); !s.isDown {
		s.isDown = true
		s.put("connection", event{"connection", connection{Message: s.message}})
	}
	s.close()
}

// up notes that the server answers.
func (s *fleetState) up() {
	if s.isDown {
		s.isDown, s.message = false, ""
		s.put("connection", event{"connection", connection{OK: true}})
		s.put("reset", event{"reset", struct{}{}})
	}
	s.checkComplete()
}
