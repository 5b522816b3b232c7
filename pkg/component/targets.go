// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/metrics"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// engine is what a component needs of reconciler.Reconciler.
type engine interface {
	Apply(ctx context.Context, request reconciler.ApplyRequest) (reconciler.Outcome, error)
	Delete(ctx context.Context, request reconciler.DeleteRequest) (reconciler.Outcome, error)
	DeletionBlockers(ctx context.Context, request reconciler.DeleteRequest) ([]reconciler.Blocker, error)
	Recover(ctx context.Context, request reconciler.RecoverRequest) ([]reconciler.InventoryItem, error)
	StopWatching(owner reconciler.Owner)
	IsWatching() bool
	Close()
}

// connection is a client and an engine for the dependent objects of a component, in its
// target cluster and with its identity.
type connection struct {
	client client.Client
	engine engine
	lease  *target.Lease // may be nil
}

// release gives the lease of the target back.
func (t connection) release() { t.lease.Release() }

// targets keeps one engine for each target of the pool.
type targets struct {
	pool    *target.Pool
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
	t.pool = target.New(config, target.Options{
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

// enter returns a connection for an identity; release it after the reconcile. The errors
// are those of target.Pool.
func (t *targets) enter(id identity, component client.ObjectKey) (connection, error) {
	access := target.Access{Kubeconfig: id.kubeConfig, User: id.user, Groups: id.groups}
	lease, err := t.pool.Acquire(access, component)
	if err != nil {
		return connection{}, err
	}
	return t.on(lease, id.kubeConfig == nil)
}

// on returns the connection of a lease, which it releases if that fails.
func (t *targets) on(lease *target.Lease, atHome bool) (connection, error) {
	chosen, err := t.engineOf(lease.Target, atHome)
	if err != nil {
		lease.Release()
		return connection{}, fmt.Errorf("make an engine for the target cluster: %w", err)
	}
	if lease.Evicted() {
		// It was evicted before its engine was kept, so t.close was called without it.
		t.close(lease.Target)
	}
	return connection{client: lease.Target.Client(), engine: chosen, lease: lease}, nil
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

// close drops the engine of a target that the pool evicts. No watch wakes the components
// with dependents there any more, so they are requeued.
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
		t.later(key, backoff.Jitter(unwatchedFor, verdict.Jitter, backoff.Random()))
	}
}

// isWatched reports whether what happens in the target wakes any component.
func (t *targets) isWatched(watched cluster.Target) bool {
	t.mu.Lock()
	engine, known := t.engines[watched]
	t.mu.Unlock()
	return known && engine.IsWatching()
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
		before.StopWatching(owner)
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
		home.StopWatching(owner)
	}
}

// A component that cannot use its target cluster is requeued when that changes. These
// delays are the fallback.
const (
	busyDelay        = 10 * time.Second
	unreachableDelay = 30 * time.Second
)

// targetSource is targets.
type targetSource interface {
	enter(id identity, component client.ObjectKey) (connection, error)
	settle(owner reconciler.Owner, home engine)
	forget(owner reconciler.Owner)
}

// enter returns a connection to the target cluster for an identity; release it at the
// end of the reconcile. If the cluster is busy, the reconcile ends here: no worker waits.
// The engine of the target makes digests, so the key has to be there.
func (h *handler[T]) enter(ctx context.Context, obj T, id identity) (connection, error) {
	if _, err := h.digestKey.get(ctx); err != nil {
		return connection{}, err
	}
	t, err := h.targets.enter(id, client.ObjectKeyFromObject(obj))
	if errors.Is(err, target.ErrBusy) {
		note(ctx, metrics.ResultPending)
		after := backoff.Jitter(busyDelay, verdict.Jitter, backoff.Random())
		return connection{}, &lifecycle.LaterError{After: after, Err: err}
	}
	if err == nil {
		h.targets.settle(h.owner(obj), t.engine)
		return t, nil
	}
	err = h.about(obj, err)
	_, unreachable := errors.AsType[*target.UnreachableError](err)
	_, denied := errors.AsType[*cluster.AddressDeniedError](err)
	if unreachable && !denied {
		return connection{}, &verdict.UnfinishedError{
			Facts: verdict.Facts{Unreachable: err.Error(), Net: backoff.Jitter(unreachableDelay, verdict.Jitter, backoff.Random())}, Cause: err,
		}
	}
	return connection{}, err
}
