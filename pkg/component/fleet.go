// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/pkg/component/internal/rollout"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/conditions"
)

// fleetList lists all components, with what a roll-out of a generator has to know of them.
type fleetList func(ctx context.Context, generator string) (map[client.ObjectKey]listed, error)

// fleet is what this process knows of all components for a roll-out. It follows from their statuses: it is filled
// by a list when the first component has to wait, and each reconcile adds what it has found. The methods
// are safe for concurrent use; those of nil do nothing.
type fleet struct {
	limits   rollout.Limits
	canaries labels.Selector
	now      func() time.Time
	request  func(client.ObjectKey) // a full reconcile
	list     fleetList

	loading sync.Mutex // is held during the list

	mu sync.Mutex
	// generator is that of the roll-out. What was noted of another one does not count.
	generator string
	members   rollout.Fleet
	// loaded: members are all components. Until then they are those that this process has reconciled.
	loaded bool
	// gone are the components that went during the list.
	gone map[client.ObjectKey]bool
	// requested are those that were requested because it is their turn, and have not asked since.
	requested map[client.ObjectKey]bool
	// said are those that have the condition RolloutStopped.
	said map[client.ObjectKey]bool
	// last is the last decision.
	last rollout.Decision
	// timer requests who may start after a pause.
	timer *time.Timer
}

func newFleet(r Rollout, now func() time.Time, request func(client.ObjectKey), list fleetList) *fleet {
	return &fleet{
		limits: rollout.Limits{MaxUnavailable: r.MaxUnavailable, Pause: r.Pause}, canaries: r.canarySelector(), now: now, request: request, list: list,
		members: rollout.Fleet{}, requested: map[client.ObjectKey]bool{}, said: map[client.ObjectKey]bool{},
	}
}

// load fills the fleet for the roll-out of a generator, unless it is filled.
func (f *fleet) load(ctx context.Context, generator string) error {
	f.loading.Lock()
	defer f.loading.Unlock()
	f.mu.Lock()
	if f.generator != generator { // one that changes while the process runs
		f.generator, f.loaded, f.last = generator, false, rollout.Decision{}
		clear(f.members)
		clear(f.requested)
	}
	loaded := f.loaded
	if !loaded {
		f.gone = map[client.ObjectKey]bool{}
	}
	f.mu.Unlock()
	if loaded {
		return nil
	}
	all, err := f.list(ctx, generator)
	if err != nil {
		return fmt.Errorf("list the components for the roll-out: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { f.gone = nil }()
	for key, c := range all {
		// What a reconcile has found is not older than the list.
		if _, known := f.members[key]; known || f.gone[key] {
			continue
		}
		f.members[key] = c.Component
		if c.said {
			f.said[key] = true
		}
	}
	f.loaded = true
	f.decide(client.ObjectKey{})
	return nil
}

// mayStart reports whether a component that has an earlier version may start now; if so, it counts as Updating.
func (f *fleet) mayStart(ctx context.Context, generator string, key client.ObjectKey, c rollout.Component) (bool, error) {
	if err := f.load(ctx, generator); err != nil {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.requested, key)
	// One that failed, or was admitted and could not record it, has a place already.
	admitted := c.State == rollout.Failed || f.members[key].State == rollout.Updating
	if !admitted {
		f.members[key] = c
		admitted = slices.Contains(f.members.Decide(f.limits, f.now()).Start, key)
	}
	if admitted {
		c.State, c.Why = rollout.Updating, ""
		f.members[key] = c
	}
	f.decide(key)
	return admitted, nil
}

// set notes what a reconcile with a generator has found. It reports whether the roll-out has stopped, and says why; said is whether the
// component has the condition, and first whether no other one that failed has it.
func (f *fleet) set(generator string, key client.ObjectKey, c rollout.Component, said bool) (stopped bool, message string, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.generator = cmp.Or(f.generator, generator); f.generator != generator {
		return false, "", false
	}
	if before, known := f.members[key]; !known || before != c {
		f.members[key] = c
		if c.State != rollout.Waiting {
			delete(f.requested, key)
		}
		f.decide(key)
	}
	if c.State != rollout.Failed || !f.last.Stopped {
		delete(f.said, key)
		return false, "", false
	}
	if said {
		f.said[key] = true
	}
	first = !slices.ContainsFunc(f.last.Failed, func(other client.ObjectKey) bool { return f.said[other] })
	f.said[key] = true
	return true, f.message(key.Namespace), first
}

// remove forgets a component that is gone.
func (f *fleet) remove(key client.ObjectKey) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone != nil {
		f.gone[key] = true
	}
	delete(f.requested, key)
	delete(f.said, key)
	if _, known := f.members[key]; known {
		delete(f.members, key)
		f.decide(key)
	}
}

// decide requests the components that may start and, if the roll-out stops or goes on, those that failed; but not
// the one that is being reconciled. The lock is held.
func (f *fleet) decide(current client.ObjectKey) {
	if !f.loaded {
		return
	}
	before := f.last
	f.last = f.members.Decide(f.limits, f.now())
	for _, key := range f.last.Start {
		if !f.requested[key] {
			f.requested[key] = true
			f.request(key)
		}
	}
	if f.last.Stopped != before.Stopped || f.last.Stopped && !slices.Equal(f.last.Failed, before.Failed) {
		for _, key := range f.last.Failed {
			if key != current {
				f.request(key)
			}
		}
	}
	if f.timer != nil {
		f.timer.Stop()
	}
	if f.last.After > 0 {
		f.timer = time.AfterFunc(f.last.After, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.decide(client.ObjectKey{})
		})
	}
}

// message says why the roll-out has stopped, for a namespace: it names no component of others. The lock is held.
func (f *fleet) message(namespace string) string {
	named := slices.DeleteFunc(slices.Clone(f.last.Failed), func(key client.ObjectKey) bool { return key.Namespace != namespace })
	why := verdict.FirstSentences(named, 0, func(key client.ObjectKey) string {
		name := strings.TrimPrefix(key.String(), "/")
		if reason := f.members[key].Why; reason != "" {
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
		strings.Replace(components(f.last.Waits)+" are", "component are", "component is", 1), components(len(f.last.Failed)), f.last.Max, why)
}

// pageSize is how many components a request lists.
const pageSize = 500

// fleetLister returns a function that lists all components that the manager's cache has, as the server has
// them. One that cannot be decoded is left out: it is not reconciled either.
func (h *handler) fleetLister(cached client.Reader) fleetList {
	return func(ctx context.Context, generator string) (map[client.ObjectKey]listed, error) {
		ours, err := h.cachedComponents(ctx, cached)
		if err != nil {
			return nil, err
		}
		found := map[client.ObjectKey]listed{}
		err = h.listComponents(ctx, generator, h.settings.onlyNamespace, ours, found)
		if !isForbidden(err) || h.settings.onlyNamespace != "" {
			return found, err
		}
		clear(found)
		namespaces := map[string]bool{}
		for key := range ours {
			namespaces[key.Namespace] = true
		}
		for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
			if err := h.listComponents(ctx, generator, namespace, ours, found); err != nil {
				return nil, err
			}
		}
		return found, nil
	}
}

// cachedComponents returns the components in the manager's cache, which may be those of a few namespaces; nil if the
// cache is not started.
func (h *handler) cachedComponents(ctx context.Context, cached client.Reader) (map[client.ObjectKey]bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(h.self.ListKind())
	err := cached.List(ctx, list)
	if _, stopped := errors.AsType[*cache.ErrCacheNotStarted](err); stopped {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	keys := make(map[client.ObjectKey]bool, len(list.Items))
	for i := range list.Items {
		keys[client.ObjectKeyFromObject(&list.Items[i])] = true
	}
	return keys, nil
}

// listComponents adds the components of a namespace, or of all if it is empty.
func (h *handler) listComponents(ctx context.Context, generator, namespace string, ours map[client.ObjectKey]bool, found map[client.ObjectKey]listed) error {
	options := []client.ListOption{client.InNamespace(namespace), client.Limit(pageSize)}
	if h.settings.selector != nil {
		options = append(options, client.MatchingLabelsSelector{Selector: h.settings.selector})
	}
	for next := ""; ; {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(h.self.ListKind())
		if err := h.local.List(ctx, page, append(options, client.Continue(next))...); err != nil {
			return err
		}
		for i := range page.Items {
			item := &page.Items[i]
			key := client.ObjectKeyFromObject(item)
			if item.GetDeletionTimestamp() != nil || ours != nil && !ours[key] {
				continue
			}
			if c, ok := h.listedComponent(generator, item); ok {
				found[key] = c
			}
		}
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}

// listedComponent returns what a roll-out has to know of a component. It is false if the component cannot be
// decoded, or a method of it panics.
func (h *handler) listedComponent(generator string, item *unstructured.Unstructured) (c listed, ok bool) {
	err := guard.Call(func() error {
		obj := h.author.new()
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, obj); err != nil {
			return err
		}
		c.Component = h.fleetMember(obj, generator, h.isSkipped(obj))
		c.said = conditions.Has(conditionsOf(obj), v1alpha1.ConditionRolloutStopped)
		return nil
	})
	return c, err == nil
}
