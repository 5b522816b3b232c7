// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/component/internal/trigger"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// Reconciler keeps the dependent objects of components of one type. It implements
// reconcile.Reconciler of controller-runtime.
type Reconciler[T Component] struct {
	generator manifests.Generator
	settings  settings
	now       func() time.Time
	// inventoryThreshold is how large an inventory may be in the status; 0 means the default.
	inventoryThreshold int

	mu       sync.Mutex // guards hooks, mistakes and the setup
	hooks    map[hookPoint][]hook
	mistakes []error // of the wiring; reported by the setup

	running atomic.Pointer[running] // nil before the setup
	late    atomic.Pointer[error]   // a mistake that was made after the setup
}

// running is what a setup brings into being.
type running struct {
	handler  *handler
	triggers *trigger.Queue
}

var _ reconcile.Reconciler = (*Reconciler[Component])(nil)

// NewReconciler returns a reconciler for components of type T, which is the
// pointer to an API type.
//
// The name identifies the operator in the cluster; it should be a DNS name that
// belongs to its author, such as "shop.example.com". It becomes the prefix of
// labels and annotations, and must never change. The generator describes how the
// dependent objects are rendered from a component's spec.
//
// Mistakes are not reported here, but by SetupWithManager.
func NewReconciler[T Component](name string, resourceGenerator manifests.Generator, options ReconcilerOptions) *Reconciler[T] {
	r := &Reconciler[T]{
		generator: resourceGenerator,
		now:       time.Now,
		hooks:     map[hookPoint][]hook{},
	}
	var err error
	r.settings, err = resolveOptions(name, options)
	r.mistakes = append(r.mistakes, err, checkType[T]())
	if err := renders.Validate(resourceGenerator); err != nil {
		r.mistakes = append(r.mistakes, fmt.Errorf("resource generator: %w", err))
		return r
	}
	if options.Revisions.BuildDigest != "" && renders.LacksDigest(resourceGenerator) {
		r.generator = manifests.WithDigest(resourceGenerator, options.Revisions.BuildDigest)
	}
	if options.Revisions.Rollout != nil && renders.Digest(r.generator) == "" {
		r.mistakes = append(r.mistakes, errNoDigest)
	}
	return r
}

// checkType finds out whether components can be made and understood.
func checkType[T Component]() error {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("component type %s: must be a pointer to a struct", t)
	}
	err := guard.CallNamed("a method of an empty component", func() error { // it would panic in every reconcile
		component := newComponent[T]()
		if component.GetStatus() == nil {
			return errors.New("GetStatus must not return nil")
		}
		spec := specOf(component)
		if spec == nil {
			return errors.New("GetSpec must not return nil")
		}
		return finderFor[T]().Check(spec)
	})
	if err != nil {
		return fmt.Errorf("component type %s: %w", t, err)
	}
	return nil
}

// Reconcile reconciles one component. Before the setup, and after a
// wiring mistake that came too late for it, it returns a reconcile.TerminalError.
func (r *Reconciler[T]) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	running := r.running.Load()
	if running == nil {
		return ctrl.Result{}, reconcile.TerminalError(fmt.Errorf("reconciler %s: Reconcile was called before SetupWithManager", r.settings.Name))
	}
	if late := r.late.Load(); late != nil {
		return ctrl.Result{}, reconcile.TerminalError(fmt.Errorf("reconciler %s: %w", r.settings.Name, *late))
	}
	return running.handler.telemetry.Reconcile(ctx, request.NamespacedName, func(ctx context.Context) (ctrl.Result, error) {
		result, err := running.handler.reconcile(ctx, request.NamespacedName)
		if mistake, ok := errors.AsType[*undecodableError](err); ok {
			if other, _, _ := unstructured.NestedString(mistake.object.Object, "status", "reconciler"); r.settings.Claim(mistake.object, other) != "" {
				return ctrl.Result{}, nil
			}
			return reportUndecodable(ctx, running.handler.local, r.settings.FieldOwner, mistake)
		}
		return result, err
	})
}

// ErrTriggersFull is returned by Trigger when too many triggers are waiting.
var ErrTriggersFull = errors.New("too many triggers are waiting")

// Trigger makes the component of that name reconcile soon; namespace is empty for
// a cluster-scoped one. It never blocks: when too many triggers are waiting, it
// returns ErrTriggersFull. It fails before the setup.
func (r *Reconciler[T]) Trigger(namespace, name string) error {
	running := r.running.Load()
	if running == nil {
		return fmt.Errorf("reconciler %s: Trigger was called before SetupWithManager", r.settings.Name)
	}
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if !running.triggers.Trigger(key) {
		return fmt.Errorf("trigger %s: %w", key, ErrTriggersFull)
	}
	return nil
}

// WithPostReadHook adds a hook that runs once the component and what its spec refers to are
// read, before anything is rendered or deleted. It runs during the deletion, too. It does not
// run while the component is suspended, nor in a reconcile that was caused by dependent
// objects alone.
func (r *Reconciler[T]) WithPostReadHook(hook HookFunc[T]) *Reconciler[T] {
	return r.addHook(postRead, hook)
}

// WithPreReconcileHook adds a hook that runs before the manifests are rendered and applied.
// It does not run during the deletion, while the component is suspended, nor in a reconcile
// that was caused by dependent objects alone, which drifted or became ready.
func (r *Reconciler[T]) WithPreReconcileHook(hook HookFunc[T]) *Reconciler[T] {
	return r.addHook(preReconcile, hook)
}

// WithPostReconcileHook adds a hook that runs after all dependent objects were applied and
// are ready. It does not run during the deletion nor while the component is suspended. In a
// reconcile that was caused by dependent objects alone it runs only if the component becomes
// ready by it, so it does not run after each repair of drift.
func (r *Reconciler[T]) WithPostReconcileHook(hook HookFunc[T]) *Reconciler[T] {
	return r.addHook(postReconcile, hook)
}

// WithPreDeleteHook adds a hook that runs during the deletion of a component, once nothing
// blocks it, and before dependent objects are deleted. Deletions take several reconciles; it
// runs in each of them. It does not run if the deletion orphans all dependents.
func (r *Reconciler[T]) WithPreDeleteHook(hook HookFunc[T]) *Reconciler[T] {
	return r.addHook(preDelete, hook)
}

// WithPostDeleteHook adds a hook that runs during the deletion of a component, once no
// dependent object is left, and before the finalizer is removed. If it fails, the component
// remains. It does not run if the deletion orphans all dependents.
func (r *Reconciler[T]) WithPostDeleteHook(hook HookFunc[T]) *Reconciler[T] {
	return r.addHook(postDelete, hook)
}

// addHook records mistakes, because it has no error to return: a nil hook is
// reported by the setup, a hook that comes too late by every reconcile.
func (r *Reconciler[T]) addHook(point hookPoint, hook HookFunc[T]) *Reconciler[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if hook == nil {
		r.mistakes = append(r.mistakes, fmt.Errorf("%s hook %d is nil", point, len(r.hooks[point])+1))
	}
	if r.running.Load() != nil {
		r.late.Store(new(fmt.Errorf("a %s hook was registered after the setup", point)))
		return r // the hooks are in use
	}
	r.hooks[point] = append(r.hooks[point], hookOf(hook))
	return r
}
