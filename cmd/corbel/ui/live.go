// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/internal/backoff"
)

// live follows the dependents of one component for one page. Its state belongs to the goroutine of run; the watches
// hand objects over.
type live struct {
	*Server
	address address
	queue   *queue
	seen    chan sighting
	running sync.WaitGroup

	reader    *inspect.Reader
	component inspect.Component
	inventory string            // of the component, with its outputs, to notice that it has changed
	shown     map[string]*entry // by keyOf
	structure []string          // of the tree, to notice that it has changed
	watches   map[group]func()  // each ends a watch
	readAfter time.Duration     // how long what was read last took
	failures  int
}

// entry is a dependent that the page shows.
type entry struct {
	item     v1alpha1.InventoryItem
	sent     dependentSummary
	workload *inspect.Dependent // its pods are shown; nil for an object without pods
}

// group are objects that one watch has; without a namespace they are in any.
type group struct {
	kind      schema.GroupVersionKind
	namespace string
}

// sighting is what a watch has seen: an object, or that it has ended.
type sighting struct {
	of      group
	object  *unstructured.Unstructured // nil: what happened meanwhile is not known
	deleted bool
}

const (
	// fewNamespaces is in how many namespaces the objects of a type are watched one by one. In more, they are watched in all.
	fewNamespaces = 8
	// podsEvery is how often the pods of workloads that are not ready are read, and readAtLeast the least time between two
	// reads: a component that is being applied changes many times a second.
	podsEvery   = 5 * time.Second
	readAtLeast = 300 * time.Millisecond
)

func newLive(s *Server, a address, q *queue) *live {
	return &live{Server: s, address: a, queue: q, seen: make(chan sighting), shown: map[string]*entry{}, watches: map[group]func(){}}
}

// followTree sends the tree of a component and each change of it, until the context ends.
func (s *Server) followTree(ctx context.Context, a address, q *queue) {
	l := newLive(s, a, q)
	defer l.running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A timer that is not set never fires.
	read, pods, poll := time.NewTimer(0), time.NewTimer(time.Hour), time.NewTicker(podsEvery)
	defer poll.Stop()
	pods.Stop()
	var lastRead, lastPods time.Time
	var readSet, podsSet = true, false
	for {
		var again, podsChanged bool
		err := guarded(func() error {
			select {
			case <-ctx.Done():
			case <-read.C:
				readSet = false
				started := time.Now()
				again = l.readAll(ctx) != nil
				lastRead = time.Now() // also after a panic, which readAll makes an error
				l.readAfter = max(readAtLeast, 2*lastRead.Sub(started))
			case <-pods.C:
				podsSet = false
				l.readPods(ctx)
				lastPods = time.Now()
			case <-poll.C:
				podsChanged = l.waitsForPods()
			case seen := <-l.seen:
				again, podsChanged = l.see(seen)
			}
			return nil
		})
		if ctx.Err() != nil {
			return
		}
		if (again || err != nil) && !readSet {
			readSet = true
			wait := l.readAfter
			if l.failures > 0 {
				wait = backoff.Delay(l.failures, retryBase, retryDown)
			}
			read.Reset(time.Until(lastRead.Add(wait)))
		}
		if podsChanged && !podsSet {
			podsSet = true
			pods.Reset(time.Until(lastPods.Add(readAtLeast)))
		}
	}
}

// readAll reads the component and its dependents, sends what differs, and watches what there is. What fails is shown in
// place of the tree.
func (l *live) readAll(ctx context.Context) error {
	err := guarded(func() error { return l.readOnce(ctx) })
	if err == nil {
		l.failures = 0
		return nil
	}
	l.failures++
	l.structure = nil // the whole tree is sent again: one that waits is not sent any more
	l.queue.put(treeKey, event{"problem", err.Error()})
	return err
}

func (l *live) readOnce(ctx context.Context) error {
	reader, v, err := l.read(ctx, l.address)
	if err != nil {
		return err
	}
	l.reader, l.component, l.inventory = reader, v.component, inventoryOf(v.component.Object)
	sent := v.tree()
	shown, structure, remote := map[string]*entry{}, []string{string(v.component.Object.GetUID()), sent.Unread, fmt.Sprint(sent.Outputs, sent.SecretOutputs)}, false
	for _, d := range v.dependents {
		e := &entry{item: d.Item, sent: dependentOf(d, v.podsOf(d))}
		e.keepWorkload(d)
		shown[e.sent.Key] = e
		structure = append(append(append(structure, d.Stage.Title, e.sent.Key), e.sent.DependsOn...), "")
		remote = remote || d.State == inspect.StateRemote
	}
	if reflect.DeepEqual(structure, l.structure) {
		for key, e := range shown {
			l.send(l.shown[key].sent, e.sent)
		}
	} else {
		l.queue.put(treeKey, event{"tree", sent})
	}
	l.shown, l.structure = shown, structure
	if remote {
		shown = nil // what has their names in this cluster is not theirs
	}
	l.watch(ctx, shown)
	return nil
}

// keepWorkload keeps of a workload what its pods are found by.
func (e *entry) keepWorkload(d inspect.Dependent) {
	if e.workload = nil; d.Object != nil && inspect.IsWorkload(d.Item) {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetUID(d.Object.GetUID())
		d.Object, d.Changes = object, nil
		e.workload = &d
	}
}

// send sends a dependent if it differs from what was sent before.
func (l *live) send(before, now dependentSummary) {
	if !reflect.DeepEqual(before, now) {
		l.queue.put(dependentKey+now.Key, event{"dependent", change{"set", now}})
	}
}

// see shows what a watch has seen. It reports whether all has to be read again, and whether pods have to be.
func (l *live) see(s sighting) (again, podsChanged bool) {
	switch {
	case s.object == nil:
		return true, false
	case s.of == l.ownGroup():
		return s.deleted || inventoryOf(s.object) != l.inventory, false
	}
	key := keyOf(v1alpha1.InventoryItem{Group: s.of.kind.Group, Kind: s.of.kind.Kind, Namespace: s.object.GetNamespace(), Name: s.object.GetName()})
	e := l.shown[key]
	switch {
	case e == nil:
		return false, false // it is in no inventory yet, or no more; a change of that is noticed
	case s.deleted:
		return true, false // or it has lost its label
	}
	d := l.component.Assess(e.item, s.object)
	now := dependentOf(d, nil)
	now.Pods = e.sent.Pods
	l.send(e.sent, now)
	e.sent = now
	e.keepWorkload(d)
	return false, e.workload != nil
}

// waitsForPods reports whether there are workloads that are not ready: what their pods wait for may change without
// a change of the workload.
func (l *live) waitsForPods() bool {
	for _, e := range l.shown {
		if e.workload != nil && !e.sent.Ready {
			return true
		}
	}
	return false
}

// readPods reads the pods of all workloads.
func (l *live) readPods(ctx context.Context) {
	var workloads []inspect.Dependent
	for _, e := range l.shown {
		if e.workload != nil {
			workloads = append(workloads, *e.workload)
		}
	}
	pods, err := l.reader.Pods(ctx, workloads)
	for _, e := range l.shown {
		if e.workload == nil {
			continue
		}
		if list, known := pods[e.workload.Object.GetUID()]; known || err == nil { // what could not be read stays as it was
			now := e.sent
			now.Pods = podsOf(list)
			l.send(e.sent, now)
			e.sent = now
		}
	}
}

// ownGroup is the watch of the component itself.
func (l *live) ownGroup() group {
	return group{l.component.Type.GroupVersionKind, "component/" + l.address.namespace}
}

// watch starts the watches of the dependents and of the component, and ends those of types that are gone.
func (l *live) watch(ctx context.Context, shown map[string]*entry) {
	namespaces := map[schema.GroupVersionKind]map[string]bool{}
	for _, e := range shown {
		kind := inspect.KindOf(e.item)
		if namespaces[kind] == nil {
			namespaces[kind] = map[string]bool{}
		}
		namespaces[kind][e.item.Namespace] = true
	}
	own := &client.ListOptions{Namespace: l.component.Object.GetNamespace(), FieldSelector: fields.OneTermEqualSelector("metadata.name", l.address.name)}
	wanted := map[group]*client.ListOptions{l.ownGroup(): own}
	if label := l.component.OwnerLabel(); label != nil {
		selector := labels.SelectorFromSet(labels.Set(label))
		for kind, in := range namespaces {
			if len(in) > fewNamespaces {
				in = map[string]bool{"": true}
			}
			for namespace := range in {
				wanted[group{kind, namespace}] = &client.ListOptions{Namespace: namespace, LabelSelector: selector}
			}
		}
	}
	for of, end := range l.watches {
		if wanted[of] == nil {
			end()
			delete(l.watches, of)
		}
	}
	for of, options := range wanted {
		if l.watches[of] == nil {
			watchCtx, cancel := context.WithCancel(ctx)
			l.watches[of] = cancel
			l.running.Go(func() { l.watchGroup(watchCtx, of, options) })
		}
	}
}

// watchGroup watches objects until the context ends. What is there when a watch begins is seen, too; what was deleted
// between two watches is not, so all is read again.
func (l *live) watchGroup(ctx context.Context, of group, options *client.ListOptions) {
	hand := func(s sighting) {
		select {
		case l.seen <- s:
		case <-ctx.Done():
		}
	}
	for attempt := 0; ctx.Err() == nil; attempt++ {
		started := time.Now()
		err := l.cluster.watch(ctx, of.kind, options, func(object *unstructured.Unstructured, deleted bool) {
			hand(sighting{of, object, deleted})
		})
		if time.Since(started) > retryDown {
			attempt = 0
		}
		limit := retryMost // a type that may not be watched is read as often
		if err == nil || isDown(err) {
			limit, attempt = retryDown, min(attempt, retryQuick)
		}
		pause(ctx, backoff.Delay(attempt, retryBase, limit))
		hand(sighting{of: of})
	}
}

// inventoryOf is the inventory in the status with the outputs, as text to compare.
func inventoryOf(object *unstructured.Unstructured) string {
	status, _ := object.Object["status"].(map[string]any)
	text, _ := json.Marshal([]any{status["inventory"], status["outputs"], status["secretOutputs"]})
	return string(text)
}
