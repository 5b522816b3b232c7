// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/informer"
	"github.com/corbel-run/corbel/internal/report"
)

// Watches requeues components when objects change that they depend on and do not own. The
// methods do nothing on nil.
type Watches struct {
	// references watches the objects of references, with the identity of the operator.
	references *informer.Manager
	local      cluster.Target

	// requeueAwaiting requeues a component when an object that it waits for in its target has
	// changed.
	requeueAwaiting func(client.ObjectKey)

	mu     sync.Mutex
	closed bool
	// targets are those in which components wait for objects, by component.
	targets map[client.ObjectKey]cluster.Target
	awaited map[cluster.Target]*awaited
}

// awaited watches the objects that components wait for in one target.
type awaited struct {
	*informer.Manager
	components int
	// types are the types that the target does not serve, by the component that waits for them.
	types map[client.ObjectKey][]schema.GroupVersionKind
	// endAsking ends that it is asked for them; nil if it is not.
	endAsking context.CancelFunc
}

// askEvery is how often a target is asked for the types that components wait for. One request is for all of them.
//
// Limit: the time after which a type is noticed that a component waits for.
const askEvery = 5 * time.Second

// NewWatches returns Watches that watch nothing yet. If an object that a component waits for in its
// target has changed, resetIdle is called before requeue: its next delay is a short one then.
func NewWatches(config *rest.Config, requeue, resetIdle func(client.ObjectKey)) (*Watches, error) {
	local, err := cluster.New(config, cluster.Options{})
	if err != nil {
		return nil, err
	}
	return &Watches{
		references: informer.NewManager(local, requeue), local: local,
		requeueAwaiting: func(key client.ObjectKey) { resetIdle(key); requeue(key) },
		targets:         map[client.ObjectKey]cluster.Target{}, awaited: map[cluster.Target]*awaited{},
	}, nil
}

// Run ends all watches when the context ends.
func (w *Watches) Run(ctx context.Context) error {
	<-ctx.Done()
	w.mu.Lock()
	w.closed = true
	for _, inTarget := range w.awaited {
		inTarget.close()
	}
	w.mu.Unlock()
	w.references.Close()
	w.local.Close()
	return nil
}

// SetReferences sets the objects of a component's references, as its reconcile has read them.
func (w *Watches) SetReferences(key client.ObjectKey, references []informer.Reference) {
	if w != nil {
		w.references.Set(key, references)
	}
}

// AddReference adds an object that a reconcile of a component has written to the objects of its references.
func (w *Watches) AddReference(key client.ObjectKey, reference informer.Reference) {
	if w != nil {
		w.references.Add(key, reference)
	}
}

// ReferenceOwners returns the number of components that refer to objects.
func (w *Watches) ReferenceOwners() int { return w.references.Stats().Owners }

// SetAwaited sets the objects of other owners that a component waits for in its target.
func (w *Watches) SetAwaited(key client.ObjectKey, target cluster.Target, objects []report.AwaitedObject) {
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
		w.awaited[target] = &awaited{Manager: informer.NewManager(target, w.requeueAwaiting), types: map[client.ObjectKey][]schema.GroupVersionKind{}}
	}
	if w.targets[key] == nil {
		w.targets[key] = target
		w.awaited[target].components++
	}
	inTarget := w.awaited[target]
	references := make([]informer.Reference, 0, len(objects))
	delete(inTarget.types, key)
	for _, f := range objects {
		if f.Kind != "" {
			inTarget.types[key] = append(inTarget.types[key], f.Type.GroupVersion().WithKind(f.Kind))
			continue
		}
		references = append(references, f)
	}
	inTarget.Set(key, references)
	if len(inTarget.types) > 0 && inTarget.endAsking == nil {
		var ctx context.Context
		ctx, inTarget.endAsking = context.WithCancel(context.Background())
		go w.askForTypes(ctx, inTarget, target.Types())
	}
}

// askForTypes requeues components once the target serves a type that they wait for, until none of them waits.
func (w *Watches) askForTypes(ctx context.Context, inTarget *awaited, types *cluster.Types) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(askEvery):
		}
		w.mu.Lock()
		served := map[schema.GroupVersion]map[string]cluster.Resource{}
		for _, awaited := range inTarget.types {
			for _, gvk := range awaited {
				served[gvk.GroupVersion()] = nil
			}
		}
		if len(served) == 0 {
			inTarget.endAsking()
			inTarget.endAsking = nil
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		for gv := range served {
			served[gv], _ = types.Kinds(ctx, gv) // an unknown type is asked for again
		}
		w.mu.Lock()
		var requeued []client.ObjectKey
		for key, awaited := range inTarget.types {
			if slices.ContainsFunc(awaited, func(gvk schema.GroupVersionKind) bool { return served[gvk.GroupVersion()][gvk.Kind].Kind != "" }) {
				requeued = append(requeued, key)
				delete(inTarget.types, key)
			}
		}
		w.mu.Unlock()
		for _, key := range requeued {
			w.requeueAwaiting(key)
		}
	}
}

// stopWaiting ends that a component waits in a target. Where no component waits, nothing is
// watched.
func (w *Watches) stopWaiting(key client.ObjectKey, target cluster.Target) {
	delete(w.targets, key)
	inTarget := w.awaited[target]
	inTarget.Set(key, nil)
	delete(inTarget.types, key)
	if inTarget.components--; inTarget.components == 0 {
		delete(w.awaited, target)
		inTarget.close()
	}
}

// close ends everything about a target.
func (a *awaited) close() {
	if a.endAsking != nil {
		a.endAsking()
	}
	go a.Close() // it waits for the ends of the watches
}

// ForgetComponent is for components that depend on nothing any more.
func (w *Watches) ForgetComponent(key client.ObjectKey) {
	w.SetReferences(key, nil)
	w.SetAwaited(key, nil, nil)
}
