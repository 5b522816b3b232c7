// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/events"
	"github.com/corbel-run/corbel/internal/ledger"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// handler does the work of one pass for the lifecycle loop. It is immutable; what
// it remembers about components from pass to pass only saves requests and words.
type handler[T Component] struct {
	settings  settings
	generator manifests.Generator
	hooks     map[hookPoint][]HookFunc[T]
	kind      schema.GroupVersionKind // of T
	finder    *finder
	digestKey digestKeySource
	targets   targetSource
	local     client.Client // reads from the server
	mapper    meta.RESTMapper
	managers  client.Client // for hooks
	recorder  events.Recorder
	now       func() time.Time
	ledger    *ledger.Ledger

	guests                                    *guests
	hookTimeout, generateTimeout, loadTimeout time.Duration

	activity  *backoff.Activity[client.ObjectKey]
	turns     *backoff.Activity[client.ObjectKey] // to get into the target
	left      *backoff.Activity[client.ObjectKey] // to find out what has become of it
	causes    *causes
	tallies   *tallies
	lookouts  *lookouts // may be nil
	operators *operators

	// missing holds, by component, the namedRights.
	missing sync.Map
	journal journal

	telemetry *telemetry
	renders   *renders
	lately    *lately
	// begins tells, once in a pass, whether it is only for dependents that changed.
	begins func(client.ObjectKey) bool
	// later asks for such a pass after a while.
	later func(client.ObjectKey, time.Duration)
}

// digestKeySource is digestKey.
type digestKeySource interface {
	get(ctx context.Context) ([]byte, error)
}

var (
	_ lifecycle.Handler[Component]   = (*handler[Component])(nil)
	_ lifecycle.Suspender[Component] = (*handler[Component])(nil)
	_ lifecycle.Detacher[Component]  = (*handler[Component])(nil)
	_ lifecycle.Releaser[Component]  = (*handler[Component])(nil)
	_ lifecycle.Judge[Component]     = (*handler[Component])(nil)
	_ lifecycle.Builder[Component]   = (*handler[Component])(nil)
	_ lifecycle.Finisher             = (*handler[Component])(nil)
)

// Claim says in the status of a new component that it was seen.
func (h *handler[T]) Claim(_ context.Context, obj T) error {
	if obj.GetStatus().State == "" {
		h.write(obj, judge(facts{claimed: true}), h.now())
	}
	return nil
}

// Suspended implements lifecycle.Suspender.
func (h *handler[T]) Suspended(obj T) bool { return isSuspended(obj) }

// Detached implements lifecycle.Detacher: a component that is abandoned can go, whatever
// else is wrong with it.
func (h *handler[T]) Detached(obj T) bool {
	abandoned, err := abandonOf(obj, h.settings.name)
	return err == nil && abandoned
}

// UpdateStatus has nothing to look at: nobody waits for a suspended component, and
// its timeout must not go on. What happens to its dependents is nobody's business.
func (h *handler[T]) UpdateStatus(_ context.Context, obj T) error {
	h.lookouts.forget(client.ObjectKeyFromObject(obj))
	h.lately.forget(client.ObjectKeyFromObject(obj))
	h.targets.forget(h.ownerNamed(client.ObjectKeyFromObject(obj)))
	obj.GetStatus().ProcessingSince = nil
	return nil
}

// Finished forgets a component that is gone, or no concern of ours any more.
func (h *handler[T]) Finished(ctx context.Context, key client.ObjectKey) {
	h.leave(ctx, key)
	h.telemetry.gone(ctx, key)
	h.renders.forget(key)
	h.lately.forget(key)
	h.begins(key)
	h.targets.forget(h.ownerNamed(key))
	h.activity.Forget(key)
	h.turns.Forget(key)
	h.causes.forget(key)
	h.tallies.take(key)
	h.missing.Delete(key)
	h.journal.forget(key)
	h.lookouts.forget(key)
	h.operators.forget(key)
}

// ownerNamed is the component of that name in the eyes of the engine, in whatever incarnation.
func (h *handler[T]) ownerNamed(key client.ObjectKey) reconciler.Owner {
	return reconciler.Owner{Group: h.kind.Group, Kind: h.kind.Kind, Namespace: key.Namespace, Name: key.Name}
}

// owner is the component in the eyes of the engine.
func (h *handler[T]) owner(obj T) reconciler.Owner {
	return reconciler.Owner{
		Group: h.kind.Group, Kind: h.kind.Kind,
		Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
	}
}

// objectName is how messages name an object: "Kind namespace/name".
func objectName(kind string, obj metav1.Object) string {
	if obj.GetNamespace() == "" {
		return kind + " " + obj.GetName()
	}
	return fmt.Sprintf("%s %s/%s", kind, obj.GetNamespace(), obj.GetName())
}
