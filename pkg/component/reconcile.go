// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/events"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/inventory"
	"github.com/corbel-run/corbel/pkg/component/internal/references"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
)

// handler reconciles components. It is immutable; what it remembers about components from
// one reconcile to the next only saves requests and words.
type handler[T Component] struct {
	// sessions reads components and writes their status.
	sessions *lifecycle.Sessions[T]

	settings  settings
	generator manifests.Generator
	hooks     map[hookPoint][]HookFunc[T]
	kind      schema.GroupVersionKind // of T
	finder    *references.Finder
	digestKey digestKeySource
	targets   targetSource
	local     client.Client // reads from the server
	mapper    meta.RESTMapper
	managers  client.Client // for hooks
	recorder  events.Recorder
	now       func() time.Time
	inventory *inventory.Store

	guard                                     *guard.Guard
	hookTimeout, generateTimeout, loadTimeout time.Duration

	memory   *memory
	left     *backoff.Activity[client.ObjectKey] // to find out what has become of components that are gone
	lookouts *lookouts                           // may be nil

	telemetry *telemetry
	// begins tells, once in a pass, whether it is only for dependents that changed.
	begins func(client.ObjectKey) bool
	// later asks for such a pass after a while.
	later func(client.ObjectKey, time.Duration)
}

// digestKeySource is digestKey.
type digestKeySource interface {
	get(ctx context.Context) ([]byte, error)
}

// reconcile reconciles one component: it reads the component, does what its phase asks for,
// and writes its status.
func (h *handler[T]) reconcile(ctx context.Context, key client.ObjectKey) (ctrl.Result, error) {
	session, err := h.sessions.Open(ctx, key, h.wishes)
	if err != nil {
		return ctrl.Result{}, err
	}
	obj := session.Object
	session.Run(ctx, func(ctx context.Context) (result.Result, error) {
		switch session.Phase {
		case lifecycle.PhaseClaim, lifecycle.PhaseApply:
			h.noteFirstSeen(obj)
			if err := session.Claim(ctx); err != nil {
				return result.Empty, err
			}
			return h.createOrUpdate(ctx, obj, session.Commit)
		case lifecycle.PhaseDelete:
			return h.delete(ctx, obj, session.Commit)
		case lifecycle.PhaseSkip:
			h.rest(obj)
		}
		return result.Empty, nil
	})
	session.Release(ctx, func(ctx context.Context, _ bool) error { return h.release(ctx, obj) })
	if session.Gone {
		h.forget(ctx, key)
	}
	return session.Close(ctx, func(outcome lifecycle.Outcome) result.Verdict { return h.report(ctx, obj, outcome) })
}

// wishes returns what the component says about its reconcile. One that is abandoned can go,
// whatever else is wrong with it.
func (h *handler[T]) wishes(obj T) lifecycle.Wishes {
	return lifecycle.Wishes{Suspended: isSuspended(obj), Detached: h.isAbandoned(obj)}
}

func (h *handler[T]) isAbandoned(obj T) bool {
	abandoned, err := abandonOf(obj, h.settings.name)
	return err == nil && abandoned
}

// isSuspended reports whether the component asks for rest. That its management policy may
// say the same is found out by the session.
func isSuspended(c Component) bool {
	own, ok := configurationOf[SuspensionConfiguration](c)
	return ok && own.IsSuspended()
}

// noteFirstSeen says in the status of a new component that it was seen.
func (h *handler[T]) noteFirstSeen(obj T) {
	if obj.GetStatus().State == "" {
		h.setVerdict(obj, verdict.Judge(verdict.Facts{Claimed: true}), h.now())
	}
}

// rest is for a component that is suspended: its dependents are not reconciled, nothing
// wakes it, and its timeout does not go on.
func (h *handler[T]) rest(obj T) {
	h.lookouts.forget(client.ObjectKeyFromObject(obj))
	h.memory.takeRendered(client.ObjectKeyFromObject(obj))
	h.targets.forget(h.ownerNamed(client.ObjectKeyFromObject(obj)))
	// The dependents have no chance to become ready, so the timeout starts anew afterwards.
	obj.GetStatus().stopTimeout(h.now())
	h.remembered(obj).timeoutPassed = 0
}

// forget drops what is kept about a component that is gone, or not the concern of this
// process any more.
func (h *handler[T]) forget(ctx context.Context, key client.ObjectKey) {
	h.leave(ctx, key)
	h.telemetry.gone(ctx, key)
	h.begins(key)
	h.targets.forget(h.ownerNamed(key))
	h.lookouts.forget(key)
	h.memory.forget(key)
}

// remembered is what is remembered about the component.
func (h *handler[T]) remembered(obj T) *remembered {
	return h.memory.of(client.ObjectKeyFromObject(obj))
}

// ownerNamed returns the owner that the engine knows a component as, whatever its uid.
func (h *handler[T]) ownerNamed(key client.ObjectKey) reconciler.Owner {
	return reconciler.Owner{Group: h.kind.Group, Kind: h.kind.Kind, Namespace: key.Namespace, Name: key.Name}
}

// owner returns the owner that the engine knows the component as.
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
