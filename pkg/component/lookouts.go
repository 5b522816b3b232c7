// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"sync"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/informer"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// lookouts wake components when what they depend on, and do not own, has changed.
// The methods do nothing on nil.
type lookouts struct {
	// home watches what components refer to, with the identity of the operator.
	home   *informer.Manager
	target cluster.Target

	// arrived wakes a component when what it waits for in its target has changed.
	arrived func(client.ObjectKey)

	mu     sync.Mutex
	closed bool
	// where is where components wait for objects in their targets.
	where  map[client.ObjectKey]cluster.Target
	abroad map[cluster.Target]*abroad
}

// abroad watches what components wait for in one target.
type abroad struct {
	*informer.Manager
	waiting int
}

// newLookouts returns lookouts that watch nothing yet. Wake makes a component come
// again; before, hurry is called if what it waits for in its target has changed: then
// it does not pay to be slow.
func newLookouts(config *rest.Config, wake, hurry func(client.ObjectKey)) (*lookouts, error) {
	target, err := cluster.New(config, cluster.Options{})
	if err != nil {
		return nil, err
	}
	return &lookouts{
		home: informer.NewManager(target, informer.Options{Notify: wake}), target: target,
		arrived: func(key client.ObjectKey) { hurry(key); wake(key) },
		where:   map[client.ObjectKey]cluster.Target{}, abroad: map[cluster.Target]*abroad{},
	}, nil
}

// run ends everything when the context ends.
func (l *lookouts) run(ctx context.Context) error {
	<-ctx.Done()
	l.mu.Lock()
	l.closed = true
	for _, there := range l.abroad {
		go there.Close()
	}
	l.mu.Unlock()
	l.home.Close()
	l.target.Close()
	return nil
}

// refer says what a component refers to, as its pass has read it.
func (l *lookouts) refer(key client.ObjectKey, points []informer.Reference) {
	if l != nil {
		l.home.Set(key, points)
	}
}

// wait says what of others a component waits for in its target.
func (l *lookouts) wait(key client.ObjectKey, target cluster.Target, foreign []reconciler.Foreign) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var there cluster.Target
	if len(foreign) > 0 && !l.closed {
		there = target
	}
	if before := l.where[key]; before != nil && before != there {
		l.leave(key, before)
	}
	if there == nil {
		return
	}
	if l.abroad[there] == nil {
		l.abroad[there] = &abroad{Manager: informer.NewManager(there, informer.Options{Notify: l.arrived})}
	}
	if l.where[key] == nil {
		l.where[key] = there
		l.abroad[there].waiting++
	}
	points := make([]informer.Reference, 0, len(foreign))
	for _, f := range foreign {
		points = append(points, informer.Reference{Type: f.Type, Namespace: f.Namespace, Name: f.Name, Seen: f.ResourceVersion, DeletionOnly: f.DeletionOnly})
	}
	l.abroad[there].Set(key, points)
}

// leave ends that a component waits somewhere. Where nobody waits, nothing is watched.
func (l *lookouts) leave(key client.ObjectKey, there cluster.Target) {
	delete(l.where, key)
	at := l.abroad[there]
	at.Set(key, nil)
	if at.waiting--; at.waiting == 0 {
		delete(l.abroad, there)
		go at.Close() // it waits for the ends of the watches
	}
}

// forget is for components that depend on nothing any more.
func (l *lookouts) forget(key client.ObjectKey) {
	l.refer(key, nil)
	l.wait(key, nil, nil)
}
