// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/metrics"
	"github.com/corbel-run/corbel/internal/redact"
	"github.com/corbel-run/corbel/pkg/result"
)

// HookFunc is code of an operator that runs at a fixed point of a reconcile. The client is
// the client of the manager. In all hooks except post-read hooks ClientFromContext returns
// a client for the target cluster. The component is a copy as it is in memory: it has the
// changes of this reconcile to the status, whether they are saved already or not.
//
// Hooks of one point run in the order of their registration. The first error ends the
// reconcile and is handled as any other (see package result and types.RetriableError); an
// error that declares itself ignored is logged, and the next hook runs. Post hooks run only
// after the step that they are named for has succeeded. Reconciles are repeated, and hooks
// with them: a hook must be idempotent.
//
// A hook may set conditions of its own types and fields of the status outside of Status;
// they are saved, also if it fails. Other changes to Status are discarded, and changes to
// anything but the status are an error.
//
// The context of a hook expires after 1 minute. A hook that panics, or does not return soon
// after that, fails; while it is still running, the component is not rendered and no other
// hook of it runs.
//
// A nil hook is an error of SetupWithManager. After a hook was registered later than that,
// every reconcile fails.
type HookFunc[T Component] func(ctx context.Context, client client.Client, component T) error

// hookPoint is when a hook is called.
type hookPoint string

const (
	postRead      hookPoint = "post-read"
	preReconcile  hookPoint = "pre-reconcile"
	postReconcile hookPoint = "post-reconcile"
	preDelete     hookPoint = "pre-delete"
	postDelete    hookPoint = "post-delete"
)

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
// reported by the setup, a hook that comes too late by every pass.
func (r *Reconciler[T]) addHook(point hookPoint, hook HookFunc[T]) *Reconciler[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if hook == nil {
		r.mistakes = append(r.mistakes, fmt.Errorf("%s hook %d is nil", point, len(r.hooks[point])+1))
	}
	if r.running.Load() != nil {
		r.late.Store(new(fmt.Errorf("a %s hook was registered after the setup", point)))
	}
	r.hooks[point] = append(r.hooks[point], hook)
	return r
}

// runHooks calls the hooks of a point in their order, until one fails. An error
// that declares itself to be ignored (result.Generic) is logged.
func (h *handler[T]) runHooks(ctx context.Context, point hookPoint, obj T) error {
	if len(h.hooks[point]) == 0 {
		return nil
	}
	return h.telemetry.part(ctx, metrics.PhaseHooks, func(ctx context.Context) error {
		return h.runHooksInOrder(ctx, point, obj)
	})
}

func (h *handler[T]) runHooksInOrder(ctx context.Context, point hookPoint, obj T) error {
	for i, hook := range h.hooks[point] {
		if err := h.settings.leaderLock.leading(); err != nil {
			return err
		}
		what := fmt.Sprintf("%s hook %d", point, i+1)
		err := h.runHook(ctx, what, hook, obj)
		if err != nil && result.Compute(result.Empty, err, nil).Outcome == result.Ignored {
			logf.FromContext(ctx).Info("the error of a hook is ignored", "hook", what, "error", err.Error())
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// runHook gives the hook a copy, so that a hook that was left behind can do no
// harm, and takes over what the hook made of the status.
func (h *handler[T]) runHook(ctx context.Context, what string, hook HookFunc[T], obj T) error {
	theirs, err := copyOf(obj)
	if err != nil {
		return err
	}
	returned, err := guarded(ctx, h.guard, client.ObjectKeyFromObject(obj), what, h.hookTimeout, func(ctx context.Context) (bool, error) {
		err := hook(ctx, h.managers, theirs)
		return true, err
	})
	if !returned {
		return err // it panicked, or still runs
	}
	// Also a hook that fails may say why in a condition of its own, and the status may be
	// written before the reconcile ends.
	err = errors.Join(err, takeOver(what, obj, theirs))
	hideIn(obj.GetStatus(), redact.From(ctx))
	return err
}

// takeOver makes theirs, a copy that code which is not ours has worked on, the
// component, provided that only the status was changed.
func takeOver[T Component](what string, obj, theirs T) error {
	if err := onlyStatusDiffers(obj, theirs); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	keepOurs(obj.GetStatus(), theirs.GetStatus())
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(theirs).Elem())
	return nil
}

// keepOurs puts back what a hook has no business to change: an inventory that was
// reset would lose objects. Conditions of other types than ours are the hook's.
func keepOurs(ours, theirs *Status) {
	conditions := slices.DeleteFunc(slices.Clone(theirs.Conditions), isOurs)
	for _, condition := range ours.Conditions {
		if isOurs(condition) {
			conditions = append(conditions, condition)
		}
	}
	slices.SortStableFunc(conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	*theirs = *ours
	theirs.Conditions = conditions
}

func isOurs(condition metav1.Condition) bool {
	switch condition.Type {
	case v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled, v1alpha1.ConditionDrifted,
		v1alpha1.ConditionOperatorConflict:
		return true
	}
	return false
}

func copyOf[T Component](obj T) (T, error) {
	duplicate, ok := obj.DeepCopyObject().(T)
	if !ok {
		return duplicate, fmt.Errorf("DeepCopyObject of %T returns %T", obj, obj.DeepCopyObject())
	}
	return duplicate, nil
}

// onlyStatusDiffers fails if anything else is different. The serialised forms are
// compared, because that is what would have been meant to be saved.
func onlyStatusDiffers(before, after Component) error {
	// The inventory may be large, and does not matter here.
	kept := before.GetStatus().Inventory
	defer func() { before.GetStatus().Inventory = kept }()
	before.GetStatus().Inventory, after.GetStatus().Inventory = v1alpha1.Inventory{}, v1alpha1.Inventory{}

	was, err := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
	if err != nil {
		return err
	}
	is, err := runtime.DefaultUnstructuredConverter.ToUnstructured(after)
	if err != nil {
		return err
	}
	delete(was, "status")
	delete(is, "status")
	for _, part := range []string{"metadata", "spec"} {
		if !equality.Semantic.DeepEqual(was[part], is[part]) {
			return fmt.Errorf("changed the %s of the component; it may change the status only", part)
		}
	}
	if !equality.Semantic.DeepEqual(was, is) {
		return errors.New("changed more of the component than its status")
	}
	return nil
}

const (
	// generateTimeout and hookTimeout are the deadlines of code that is not ours.
	generateTimeout = 2 * time.Minute
	hookTimeout     = time.Minute
	// gracePeriod is for code that notices the deadline and wants to say what it was at.
	gracePeriod = 2 * time.Second
)

// guarded calls code of the author of the operator with a deadline and returns what it
// returns. Since it may be left behind, f must not share with the caller what the caller
// goes on to use. While it still runs, nothing else is run for the same component.
func guarded[R any](ctx context.Context, g *guard.Guard, key client.ObjectKey, what string, timeout time.Duration, f func(context.Context) (R, error)) (R, error) {
	returned, err := guard.Run(ctx, g, key, what, timeout, f)
	if err == nil {
		return returned, nil
	}
	if panicked, ok := errors.AsType[*guard.PanicError](err); ok && !panicked.Goexit {
		logf.FromContext(ctx).Error(nil, "contained a panic", "in", what, "value", panicked.Value, "stack", string(panicked.Stack))
	}
	return returned, fmt.Errorf("%s: %w", what, err)
}
