// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"sync"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/informer"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// Watches requeues components when objects change that they depend on and do not own. The
// methods do nothing on nil.
type Watches struct {
	// references watches what components refer to, with the identity of the operator.
	references *informer.Manager
	local      cluster.Target

	// requeueAwaiting requeues a component when what it waits for in its target has changed.
	requeueAwaiting func(client.ObjectKey)

	mu     sync.Mutex
	closed bool
	// targets are those in which components wait for objects, by component.
	targets map[client.ObjectKey]cluster.Target
	awaited map[cluster.Target]*awaited
}

// awaited watches what components wait for in one target.
type awaited struct {
	*informer.Manager
	components int
}

// NewWatches returns Watches that watch nothing yet. If what a component waits for in its
// target has changed, resetIdle is called before requeue: its next delay is a short one then.
func NewWatches(config *rest.Config, requeue, resetIdle func(client.ObjectKey)) (*Watches, error) {
	local, err := cluster.New(config, cluster.Options{})
	if err != nil {
		return nil, err
	}
	return &Watches{
		references: informer.NewManager(local, informer.Options{Notify: requeue}), local: local,
		requeueAwaiting: func(key client.ObjectKey) { resetIdle(key); requeue(key) },
		targets:         map[client.ObjectKey]cluster.Target{}, awaited: map[cluster.Target]*awaited{},
	}, nil
}

// Run closes the watches when the context ends.
func (w *Watches) Run(ctx context.Context) error {
	<-ctx.Done()
	w.Close()
	return nil
}

// Close ends all watches.
func (w *Watches) Close() {
	w.mu.Lock()
	w.closed = true
	for _, inTarget := range w.awaited {
		go inTarget.Close()
	}
	w.mu.Unlock()
	w.references.Close()
	w.local.Close()
}

// SetReferences sets what a component refers to, as its reconcile has read it.
func (w *Watches) SetReferences(key client.ObjectKey, references []informer.Reference) {
	if w != nil {
		w.references.Set(key, references)
	}
}

// ReferenceOwners returns the number of components that refer to objects.
func (w *Watches) ReferenceOwners() int { return w.references.Stats().Owners }

// SetAwaited sets the objects of others that a component waits for in its target.
func (w *Watches) SetAwaited(key client.ObjectKey, target cluster.Target, objects []reconciler.AwaitedObject) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(objects) == 0 || w.closed {
		target = nil
	}
	if before := w.targets[key]; before != nil && before != target {
		w.stopWaiting(key, before)
	}
	if target == nil {
		return
	}
	if w.awaited[target] == nil {
		w.awaited[target] = &awaited{Manager: informer.NewManager(target, informer.Options{Notify: w.requeueAwaiting})}
	}
	if w.targets[key] == nil {
		w.targets[key] = target
		w.awaited[target].components++
	}
	references := make([]informer.Reference, 0, len(objects))
	for _, f := range objects {
		references = append(references, informer.Reference{Type: f.Type, Namespace: f.Namespace, Name: f.Name, ResourceVersion: f.ResourceVersion, DeletionOnly: f.DeletionOnly})
	}
	w.awaited[target].Set(key, references)
}

// stopWaiting ends that a component waits in a target. Where no component waits, nothing is
// watched.
func (w *Watches) stopWaiting(key client.ObjectKey, target cluster.Target) {
	delete(w.targets, key)
	inTarget := w.awaited[target]
	inTarget.Set(key, nil)
	if inTarget.components--; inTarget.components == 0 {
		delete(w.awaited, target)
		go inTarget.Close() // it waits for the ends of the watches
	}
}

// ForgetComponent is for components that depend on nothing any more.
func (w *Watches) ForgetComponent(key client.ObjectKey) {
	w.SetReferences(key, nil)
	w.SetAwaited(key, nil, nil)
}
