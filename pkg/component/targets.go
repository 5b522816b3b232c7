// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
}

// target is where, and on whose behalf, dependent objects are kept.
type target struct {
	client client.Client
	engine engine
}

// maxEngines bounds what is kept for identities that may be gone.
const maxEngines = 256

// targets keeps one target per identity.
type targets struct {
	pool    *clients.Pool
	name    string
	options reconciler.ReconcilerOptions
	// digestKey returns the key of the digests that engines make.
	digestKey func() []byte

	mu      sync.Mutex
	engines map[cluster.Target]target
}

func newTargets(config *rest.Config, scheme *runtime.Scheme, s settings, digestKey func() []byte, now func() time.Time) *targets {
	return &targets{
		pool: clients.New(config, cluster.Options{Scheme: scheme}),
		name: s.name,
		options: reconciler.ReconcilerOptions{
			FieldOwner:              &s.fieldOwner,
			AdoptionPolicy:          &s.policies.Adoption,
			UpdatePolicy:            &s.policies.Update,
			DeletePolicy:            &s.policies.Delete,
			MissingNamespacesPolicy: &s.policies.MissingNamespaces,
			ReadyWhen:               s.readyWhen,
			TypeFence:               s.typeFence,
			Scheme:                  scheme,
			TracerProvider:          s.tracerProvider,
			Now:                     now,
		},
		digestKey: digestKey,
		engines:   map[cluster.Target]target{},
	}
}

// of returns the target for an identity.
func (t *targets) of(id identity) (target, error) {
	chosen, err := t.choose(id)
	if err != nil {
		return target{}, fmt.Errorf("make a client for the target cluster: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.engines[chosen]; ok {
		return known, nil
	}
	options := t.options
	options.DigestKey = t.digestKey()
	made, err := reconciler.NewReconciler(t.name, chosen, options)
	if err != nil {
		return target{}, err
	}
	if len(t.engines) >= maxEngines {
		clear(t.engines) // they are cheap to make again
	}
	t.engines[chosen] = target{client: chosen.Client(), engine: made}
	return t.engines[chosen], nil
}

func (t *targets) choose(id identity) (cluster.Target, error) {
	if id.user == "" {
		return t.pool.Local()
	}
	return t.pool.Impersonated(id.user, id.groups)
}
