// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package targets connects components to the clusters that their dependents are in.
//
// [Targets] has one engine for each cluster and user. The package also keeps two facts about the
// local cluster, in which components are: its uid, by [ClusterUID], and the key of all digests, by
// [DigestKey]. Functions about a target.Access complete and name the user that is impersonated, and
// explain why the server refuses it.
package targets

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// Engine is the part of reconciler.Reconciler that a component needs.
type Engine interface {
	Apply(ctx context.Context, request reconciler.ApplyRequest) (reconciler.Outcome, error)
	Delete(ctx context.Context, request reconciler.DeleteRequest) (reconciler.Outcome, error)
	Plan(ctx context.Context, request reconciler.ApplyRequest) (report.Plan, error)
	ManifestDigest(ctx context.Context, request reconciler.ApplyRequest) (string, error)
	PlanDeletion(ctx context.Context, request reconciler.DeleteRequest) (report.Plan, error)
	DeletionBlockers(ctx context.Context, request reconciler.DeleteRequest) ([]report.Blocker, error)
	Recover(ctx context.Context, request reconciler.RecoverRequest) (found []v1alpha1.InventoryItem, unlisted []string, err error)
	StopWatching(owner reconciler.Owner)
	IsWatching() bool
	Close()
}

// Connection is a client and an engine for the dependent objects of a component, in its
// target cluster and with its access.
type Connection struct {
	Client client.Client
	Engine Engine
	// Target is nil if the component has none.
	Target cluster.Target

	lease *target.Lease
}

// Release ends the use of the target. It gives the lease back to the pool.
func (c Connection) Release() { c.lease.Release() }

// Queue is trigger.Queue.
type Queue interface {
	RequestFull(key client.ObjectKey)
	RequestFast(key client.ObjectKey, after time.Duration)
	DependentChanged(owner reconciler.Owner, change reconciler.Change)
}

// Options configure Targets.
type Options struct {
	// Name is the name of the reconciler.
	Name string
	// Engine are the options of engines. The key of the digests and the handling of changes
	// are filled in.
	Engine reconciler.ReconcilerOptions
	// OnlyNamespace is the only namespace that the operator has rights in; empty: it may have
	// rights in other ones.
	OnlyNamespace string
	// Pool are the options of the pool of targets. Its callbacks are filled in.
	Pool target.Options
	// DigestKey must have been read before a component is connected.
	DigestKey *DigestKey
	LocalUID  *ClusterUID
	Queue     Queue
}

// Targets has one engine for each target of a pool.
type Targets struct {
	options Options
	pool    *target.Pool

	mu      sync.Mutex
	engines map[cluster.Target]Engine
	// watching are the engines that watch the dependents of owners.
	watching map[reconciler.Owner]Engine
}

// unwatchedFor is how long a component waits after its watches have ended because there are
// too many targets: to get room for its own again, another one may have to go.
const unwatchedFor = 30 * time.Second

// New returns Targets. The configuration is the configuration of the local cluster.
func New(config *rest.Config, options Options) *Targets {
	t := &Targets{options: options, engines: map[cluster.Target]Engine{}, watching: map[reconciler.Owner]Engine{}}
	t.options.Engine.Changed = options.Queue.DependentChanged
	options.Pool.Requeue, options.Pool.Evicted, options.Pool.Busy = options.Queue.RequestFull, t.close, t.isWatched
	t.pool = target.New(config, options.Pool)
	return t
}

// Run closes unused targets until the context ends, and then all of them.
func (t *Targets) Run(ctx context.Context) error { return t.pool.Run(ctx) }

// Connect returns a connection with an access; release it after the reconcile. The errors are
// errors of target.Pool.
func (t *Targets) Connect(access target.Access, component client.ObjectKey) (Connection, error) {
	lease, err := t.pool.Acquire(access, component)
	if err != nil {
		return Connection{}, err
	}
	// A service account in the namespace of the component usually has rights in namespaces only.
	ofNamespace := component.Namespace != "" && strings.HasPrefix(access.User, ServiceAccountUser(component.Namespace, ""))
	local := access.Kubeconfig == nil
	return t.connect(lease, local, local && (ofNamespace || access.User == "" && t.options.OnlyNamespace != ""))
}

// connect returns the connection of a lease, which it releases if that fails.
func (t *Targets) connect(lease *target.Lease, local, confined bool) (Connection, error) {
	engine, err := t.engineOf(lease.Target, local, confined)
	if err != nil {
		lease.Release()
		return Connection{}, fmt.Errorf("make an engine for the target cluster: %w", err)
	}
	if lease.Evicted() {
		// It was evicted before its engine was kept, so t.close was called without it.
		t.close(lease.Target)
	}
	return Connection{Client: lease.Target.Client(), Engine: engine, Target: lease.Target, lease: lease}, nil
}

// engineOf returns the engine for a target, which may be in the local cluster, and the user of which may be
// confined to namespaces.
func (t *Targets) engineOf(chosen cluster.Target, local, confined bool) (Engine, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.engines[chosen]; ok {
		return known, nil
	}
	options := t.options.Engine
	options.DigestKey, options.WatchNamespaces, options.LocalOwners = t.options.DigestKey.Cached(), confined, local
	var identified cluster.Target = remoteTarget{chosen, t.options.LocalUID}
	if local {
		identified = localTarget{chosen, t.options.LocalUID}
	}
	made, err := reconciler.NewReconciler(t.options.Name, reconciler.Target{Target: identified}, options)
	if err != nil {
		return nil, err
	}
	t.engines[chosen] = made
	return made, nil
}

// close drops the engine of a target that the pool evicts. Changes of the dependents there
// do not trigger reconciles any more, so their owners are requeued.
func (t *Targets) close(evicted cluster.Target) {
	t.mu.Lock()
	closing, known := t.engines[evicted]
	delete(t.engines, evicted)
	var unwatched []client.ObjectKey
	maps.DeleteFunc(t.watching, func(owner reconciler.Owner, engine Engine) bool {
		if engine != closing {
			return false
		}
		unwatched = append(unwatched, client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name})
		return true
	})
	t.mu.Unlock()
	if known {
		closing.Close()
	}
	for _, key := range unwatched {
		t.requeueUnwatched(key)
	}
}

// isWatched reports whether changes in the target trigger reconciles of any component.
func (t *Targets) isWatched(watched cluster.Target) bool {
	t.mu.Lock()
	engine, known := t.engines[watched]
	t.mu.Unlock()
	return known && engine.IsWatching()
}

// SetEngine notes which engine watches the dependents of an owner, and ends the watches of
// the one before. The target of the connection may have been evicted since it was made: then
// its engine watches nothing, and the owner is requeued as in close.
func (t *Targets) SetEngine(owner reconciler.Owner, connection Connection) {
	owner.UID = ""
	t.mu.Lock()
	before := t.watching[owner]
	evicted := t.engines[connection.Target] != connection.Engine
	if evicted {
		delete(t.watching, owner)
	} else {
		t.watching[owner] = connection.Engine
	}
	t.mu.Unlock()
	if before != nil && before != connection.Engine {
		before.StopWatching(owner)
	}
	if evicted {
		t.requeueUnwatched(client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name})
	}
}

func (t *Targets) requeueUnwatched(key client.ObjectKey) {
	t.options.Queue.RequestFast(key, backoff.Jitter(unwatchedFor, verdict.Jitter, backoff.Random()))
}

// ForgetOwner ends the watches of an owner, which waits for no target any more.
func (t *Targets) ForgetOwner(owner reconciler.Owner) {
	t.pool.ForgetComponent(client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name})
	owner.UID = ""
	t.mu.Lock()
	engine, known := t.watching[owner]
	delete(t.watching, owner)
	t.mu.Unlock()
	if known {
		engine.StopWatching(owner)
	}
}
