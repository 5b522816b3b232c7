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
	end   func()      // of the watches
	state *fleetState // nil if there are no watches
}

// fleetState is what one run of the watches knows. The mutex of the fleet guards it.
type fleetState struct {
	isComplete bool // each type was listed, or failed
	types      map[string]*typeState
	queues     map[*queue]bool
	isDown     bool
	message    string // why it is down
}

// fleetList is the event with all components, in any order.
type fleetList struct {
	Items    []componentSummary `json:"items"`
	Problems []string           `json:"problems"` // which types could not be listed
	IsDown   bool               `json:"isDown"`   // the API server cannot be reached
	Message  string             `json:"message"`
}

// typeState is what is known of a type.
type typeState struct {
	kind    schema.GroupVersionKind
	end     func()
	tried   bool
	items   map[address]componentSummary
	problem string
}

func newFleetState() *fleetState {
	return &fleetState{types: map[string]*typeState{}, queues: map[*queue]bool{}}
}

// subscribe lets a queue have all changes from now on, and what there is, unless that is known. The watches run as long
// as there are queues.
func (f *fleet) subscribe(q *queue, known bool) (unsubscribe func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state == nil {
		ctx, cancel := context.WithCancel(context.Background())
		state, running := newFleetState(), &sync.WaitGroup{}
		running.Go(func() { f.run(ctx, state, running) })
		f.state, f.end = state, func() { cancel(); running.Wait() }
	}
	f.state.queues[q] = true
	if f.state.isComplete && !known {
		q.put("fleet", f.state.all())
	}
	return func() {
		f.mu.Lock()
		delete(f.state.queues, q)
		end := f.end
		if len(f.state.queues) > 0 {
			end = func() {}
		} else {
			f.state = nil
		}
		f.mu.Unlock()
		end() // without the mutex: the watches need it to end
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

// put sends an event to all pages, when they have what there was before.
func (s *fleetState) put(key string, e event) {
	for q := range s.queues {
		if s.isComplete {
			q.put(key, e)
		}
	}
}

func (s *fleetState) all() event {
	list := fleetList{Items: []componentSummary{}, Problems: []string{}, IsDown: s.isDown, Message: s.message}
	for _, name := range slices.Sorted(maps.Keys(s.types)) {
		list.Items = slices.AppendSeq(list.Items, maps.Values(s.types[name].items))
		if problem := s.types[name].problem; problem != "" {
			list.Problems = append(list.Problems, problem)
		}
	}
	return event{"fleet", list}
}

// setProblem notes why a type cannot be listed, or that it can.
func (s *fleetState) setProblem(t *typeState, problem string) {
	if t.problem != problem {
		t.problem = problem
		s.put("fleet", s.all())
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
		s.put("component "+key.String(), event{"component", change{"gone", item}})
		return
	}
	if t.items[key] == item {
		return // only what is not shown has changed
	}
	t.items[key] = item
	s.put("component "+key.String(), event{"component", change{"set", item}})
}

// checkComplete sends the first list when each type was tried.
func (s *fleetState) checkComplete() {
	untried := func(t *typeState) bool { return !t.tried }
	if !s.isComplete && !slices.ContainsFunc(slices.Collect(maps.Values(s.types)), untried) {
		s.isComplete = true
		s.put("fleet", s.all())
	}
}

// down notes that the server cannot be reached.
func (s *fleetState) down(err error) {
	if s.message = err.Error(); !s.isDown {
		s.isDown, s.isComplete = true, true
		s.put("fleet", s.all())
	}
}

// up notes that the server answers.
func (s *fleetState) up() {
	if s.isDown {
		s.isDown, s.message = false, ""
		s.put("fleet", s.all())
	}
	s.checkComplete()
}
