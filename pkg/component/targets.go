// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/clients"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// engine is what a component needs of reconciler.Reconciler.
type engine interface {
	Apply(ctx context.Context, request reconciler.ApplyRequest) (reconciler.Outcome, error)
	Delete(ctx context.Context, request reconciler.DeleteRequest) (reconciler.Outcome, error)
	DeletionBlockers(ctx context.Context, request reconciler.DeleteRequest) ([]reconciler.Blocker, error)
	Recover(ctx context.Context, request reconciler.RecoverRequest) ([]reconciler.InventoryItem, error)
	Leave(owner reconciler.Owner)
	Watching() bool
	Close()
}

// target is where, and on whose behalf, dependent objects are kept.
type target struct {
	client client.Client
	engine engine
	lease  *clients.Lease // may be nil
}

// leave ends the use of the target.
func (t target) leave() { t.lease.Release() }

// targets keeps one engine for each target of the pool.
type targets struct {
	pool    *clients.Pool
	name    string
	options reconciler.ReconcilerOptions
	// digestKey returns the key of the digests that engines make.
	digestKey func() []byte
	// home identifies the cluster that components live in.
	home *clusterUID

	mu      sync.Mutex
	engines map[cluster.Target]engine
	// homes are where the dependents of owners are watched.
	homes map[reconciler.Owner]engine
	// later asks for a pass that has no other reason than the dependents.
	later func(client.ObjectKey, time.Duration)
}

// unwatchedFor is how long a component waits whose watches have ended because there are
// too many targets: to get room for its own again, another one may have to go.
const unwatchedFor = 30 * time.Second

// newTargets makes the targets of a reconciler that works on so many components at
// the same time; 0 if that is not known.
func newTargets(config *rest.Config, scheme *runtime.Scheme, s settings, workers int, digestKey func() []byte, home *clusterUID, wakes *triggers, now func() time.Time) *targets {
	t := &targets{
		name: s.name,
		options: reconciler.ReconcilerOptions{
			FieldOwner:              &s.fieldOwner,
			AdoptionPolicy:          &s.policies.Adoption,
			UpdatePolicy:            &s.policies.Update,
			DeletePolicy:            &s.policies.Delete,
			DriftPolicy:             &s.policies.Drift,
			MissingNamespacesPolicy: &s.policies.MissingNamespaces,
			ReadyWhen:               s.readyWhen,
			IgnoreFields:            s.ignoreFields,
			TypeFence:               s.typeFence,
			Scheme:                  scheme,
			TracerProvider:          s.tracerProvider,
			Now:                     now,
			Changed:                 wakes.onChange,
		},
		digestKey: digestKey,
		home:      home,
		engines:   map[cluster.Target]engine{},
		homes:     map[reconciler.Owner]engine{},
		later:     wakes.changed,
	}
	t.pool = clients.New(config, clients.Options{
		Cluster:    cluster.Options{Scheme: scheme},
		DialPolicy: s.dialPolicy,
		LocalUID:   s.clusterUID,
		Slots:      s.targetConcurrency,
		// One worker is left for the local cluster, whatever others do.
		Remote:  max(workers-1, 0),
		Wake:    wakes.wake,
		Evicted: t.close,
		Busy:    t.isWatched,
	})
	return t
}

// enter returns the target for an identity; leave it after the pass. The errors
// are those of clients.Pool.
func (t *targets) enter(id identity, who client.ObjectKey) (target, error) {
	access := clients.Access{Kubeconfig: id.kubeConfig, User: id.user, Groups: id.groups}
	lease, err := t.pool.Enter(access, who)
	if err != nil {
		return target{}, err
	}
	return t.on(lease, id.kubeConfig == nil)
}

// on returns the target of a lease, which it ends if that fails.
func (t *targets) on(lease *clients.Lease, atHome bool) (target, error) {
	chosen, err := t.engineOf(lease.Target, atHome)
	if err != nil {
		lease.Release()
		return target{}, fmt.Errorf("make an engine for the target cluster: %w", err)
	}
	if lease.Evicted() {
		// It was let go of before its engine was kept, so nobody else would.
		t.close(lease.Target)
	}
	return target{client: lease.Target.Client(), engine: chosen, lease: lease}, nil
}

// engineOf returns the engine for a target, which may be in the cluster that components live in.
func (t *targets) engineOf(chosen cluster.Target, atHome bool) (engine, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.engines[chosen]; ok {
		return known, nil
	}
	options := t.options
	options.DigestKey = t.digestKey()
	identified := chosen
	if atHome {
		identified = homeTarget{chosen, t.home}
	}
	made, err := reconciler.NewReconciler(t.name, identified, options)
	if err != nil {
		return nil, err
	}
	t.engines[chosen] = made
	return made, nil
}

// close drops the engine of a target that the pool lets go of. No watch wakes those
// whose dependents are there, so they come again to look after them.
func (t *targets) close(gone cluster.Target) {
	t.mu.Lock()
	leaving, known := t.engines[gone]
	delete(t.engines, gone)
	var unwatched []client.ObjectKey
	maps.DeleteFunc(t.homes, func(owner reconciler.Owner, home engine) bool {
		if home != leaving {
			return false
		}
		unwatched = append(unwatched, client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name})
		return true
	})
	t.mu.Unlock()
	if known {
		leaving.Close()
	}
	for _, key := range unwatched {
		t.later(key, backoff.Jitter(unwatchedFor, jitter, backoff.Random()))
	}
}

// isWatched tells whether what happens in the target wakes any component.
func (t *targets) isWatched(target cluster.Target) bool {
	t.mu.Lock()
	engine, known := t.engines[target]
	t.mu.Unlock()
	return known && engine.Watching()
}

// settle notes where the dependents of an owner are, and ends the watches of those
// that it has elsewhere.
func (t *targets) settle(owner reconciler.Owner, home engine) {
	owner.UID = ""
	t.mu.Lock()
	before := t.homes[owner]
	t.homes[owner] = home
	t.mu.Unlock()
	if before != nil && before != home {
		before.Leave(owner)
	}
}

// forget ends the watches of an owner.
func (t *targets) forget(owner reconciler.Owner) {
	owner.UID = ""
	t.mu.Lock()
	home, known := t.homes[owner]
	delete(t.homes, owner)
	t.mu.Unlock()
	if known {
		home.Leave(owner)
	}
}
