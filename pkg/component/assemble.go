// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/events"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/inventory"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/lifecycle"
)

// connect makes the handler of what is about to run, and adds to the manager what runs beside it.
func (r *Reconciler[T]) connect(mgr ctrl.Manager, about *running[T], gvk schema.GroupVersionKind, workers int) (*handler[T], error) {
	scheme, err := targetScheme(mgr.GetScheme(), r.settings, r.generator)
	if err != nil {
		return nil, err
	}
	handler := r.newHandler(about, gvk)
	handler.mapper, handler.managers = mgr.GetRESTMapper(), mgr.GetClient()
	handler.recorder = events.Redacted(events.NewRecorder(mgr, r.settings.name), about.telemetry.secretsOf)
	key := newDigestKey(about.client, r.settings)
	targets := newTargets(mgr.GetConfig(), scheme, r.settings, workers, key.known, newClusterUID(about.client, r.settings), about.triggers, r.now)
	handler.digestKey, handler.targets = key, targets
	if about.lookouts, err = newLookouts(mgr.GetConfig(), about.triggers.wake, handler.memory.moved); err != nil {
		return nil, err
	}
	handler.lookouts = about.lookouts
	for _, run := range []manager.RunnableFunc{targets.pool.Run, about.lookouts.run, handler.releaseOrphans} {
		if err := mgr.Add(run); err != nil {
			return nil, err
		}
	}
	handler.sessions, err = lifecycle.NewSessions(r.sessionOptions(about, handler))
	return handler, err
}

// newHandler returns a handler without what the manager has for it.
func (r *Reconciler[T]) newHandler(about *running[T], gvk schema.GroupVersionKind) *handler[T] {
	return &handler[T]{
		settings:  r.settings,
		generator: r.generator,
		hooks:     cloneHooks(r.hooks),
		kind:      gvk,
		guard:     guard.New(gracePeriod),
		finder:    finderFor[T](),
		local:     about.client,
		memory:    newMemory(),
		left:      backoff.NewActivity[client.ObjectKey](leftBase, leftLimit),
		telemetry: about.telemetry,
		begins:    about.triggers.begin,
		later:     about.triggers.changed,
		now:       r.now,
		inventory: inventory.NewStore(inventory.Options{
			Client: about.client, Name: r.settings.name, FieldOwner: r.settings.fieldOwner,
			Namespace: r.settings.operatorNamespace, Threshold: r.inventoryThreshold,
		}),

		hookTimeout:     hookTimeout,
		generateTimeout: generateTimeout,
		loadTimeout:     loadTimeout,
	}
}

func (r *Reconciler[T]) sessionOptions(about *running[T], h *handler[T]) lifecycle.Options[T] {
	options := lifecycle.Options[T]{
		Name:             r.settings.name,
		ManagementPolicy: r.settings.management,

		Client:     about.client,
		Reader:     &reader{Reader: about.client, kind: h.kind, selector: r.settings.selector},
		Finalizer:  r.settings.finalizer,
		FieldOwner: r.settings.fieldOwner,
		Recorder:   h.recorder,
		Clock:      r.now,
		New:        newComponent[T],
		Conditions: conditionsOf[T],
		Leading:    r.settings.leaderLock.leading,

		ObservedGenerationAlways: true,
	}
	if r.settings.ofNamespaces {
		options.Namespaces = about.client
	}
	return options
}

func conditionsOf[T Component](obj T) conditions.Setter {
	return conditions.For(obj, &obj.GetStatus().Conditions)
}

func cloneHooks[T Component](hooks map[hookPoint][]HookFunc[T]) map[hookPoint][]HookFunc[T] {
	clone := maps.Clone(hooks)
	for point := range clone {
		clone[point] = slices.Clone(clone[point])
	}
	return clone
}
