// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/manifests"
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
// What a hook returns, and the conditions that it sets, are shown to everybody who may read the component or its events:
// a hook must not put the value of a Secret into them. Credentials are removed only where their form shows them.
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

// hook is a HookFunc of an author, for components of any type.
type hook struct {
	call        HookFunc[Component]
	previewSafe bool
}

// hookOf returns a HookFunc as a hook. The reconciler calls it with components of type T only.
func hookOf[T Component](f HookFunc[T]) hook {
	return hook{previewSafe: isPreviewSafe(f), call: func(ctx context.Context, client client.Client, component Component) error {
		return f(ctx, client, component.(T))
	}}
}

// userCode calls code of the author of the operator: hooks, generators and references. While
// a call for a component still runs after its deadline, no other one is made for it.
type userCode struct {
	hooks map[hookPoint][]hook
	// client is what hooks get: that of the manager.
	client     client.Client
	leaderLock *LeaderLock // may be nil
	guard      *guard.Guard
	// The deadlines.
	hookTimeout, generateTimeout, loadTimeout time.Duration
	// slowAfter is when the status says what a rendering works on.
	slowAfter time.Duration
}

func newUserCode(hooks map[hookPoint][]hook, managers client.Client, lock *LeaderLock) *userCode {
	return &userCode{
		hooks: hooks, client: managers, leaderLock: lock,
		// The grace period is for code that notices the deadline and returns an error about it.
		guard:       guard.New(2 * time.Second),
		hookTimeout: time.Minute, generateTimeout: 10 * time.Minute, loadTimeout: 30 * time.Second, slowAfter: 5 * time.Second,
	}
}

// callUserCode calls f with a deadline and returns what it returns. Since f may run on after
// the deadline, it must not share with the caller what the caller goes on to use.
func callUserCode[R any](ctx context.Context, code *userCode, key client.ObjectKey, what string, timeout time.Duration, f func(context.Context) (R, error)) (R, error) {
	var guarded any = key
	if manifests.FromContext(ctx).Preview {
		guarded = "preview of " + key.String() // code that never returns in a preview does not stop reconciles
	}
	returned, err := guard.Run(ctx, code.guard, guarded, what, timeout, f)
	if err != nil {
		err = fmt.Errorf("%s: %w", what, err)
	}
	return returned, err
}

func (c *userCode) runHooks(ctx context.Context, point hookPoint, obj Component) error {
	for i, hook := range c.hooks[point] {
		if err := c.leaderLock.leading(); err != nil {
			return err
		}
		what := fmt.Sprintf("%s hook %d", point, i+1)
		err := c.runHook(ctx, what, hook.call, obj)
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

// PreviewSafe marks a hook that changes nothing outside of the component's status, so that it
// also runs when a plan is made (see Reconciler.Plan). Other hooks do not run then, and the plan
// says that it is incomplete. With another pre-reconcile hook, another generator starts a revision of each component, because
// the objects may depend on the hook.
//
//go:noinline
func PreviewSafe[T Component](hook HookFunc[T]) HookFunc[T] {
	if hook == nil {
		return nil // the setup reports it
	}
	return func(ctx context.Context, client client.Client, component T) error {
		return hook(ctx, client, component)
	}
}

// isPreviewSafe reports whether PreviewSafe made the hook: all functions that it makes are one
// piece of code.
func isPreviewSafe[T Component](hook HookFunc[T]) bool {
	marked := PreviewSafe(func(context.Context, client.Client, T) error { return nil })
	return reflect.ValueOf(hook).Pointer() == reflect.ValueOf(marked).Pointer()
}

// previewHooks runs the hooks that are marked as safe, and names those that are not.
func (c *userCode) previewHooks(ctx context.Context, point hookPoint, obj Component) (left []string, err error) {
	for i, hook := range c.hooks[point] {
		what := fmt.Sprintf("%s hook %d", point, i+1)
		if !hook.previewSafe {
			left = append(left, what)
			continue
		}
		if err := c.runHook(ctx, what, hook.call, obj); err != nil && result.Compute(result.Empty, err, nil).Outcome != result.Ignored {
			return left, err
		}
	}
	return left, nil
}

// runHook gives the hook a copy, so that a hook that exceeds its deadline can do no
// harm, and copies the status of the hook back.
func (c *userCode) runHook(ctx context.Context, what string, hook HookFunc[Component], obj Component) error {
	theirs, err := identity.Copy(obj)
	if err != nil {
		return err
	}
	known := manifests.FromContext(ctx)
	known.Component = theirs
	returned, err := callUserCode(known.In(ctx), c, client.ObjectKeyFromObject(obj), what, c.hookTimeout, func(ctx context.Context) (bool, error) {
		err := hook(ctx, c.client, theirs)
		return true, err
	})
	if !returned {
		return err // it panicked, or still runs
	}
	// Also a hook that fails may say why in a condition of its own, and the status may be
	// written before the reconcile ends.
	return errors.Join(err, takeOver(what, obj, theirs))
}

// takeOver makes theirs, a copy that code which is not ours has worked on, the
// component, provided that only the status was changed.
func takeOver(what string, obj, theirs Component) error {
	if err := onlyStatusDiffers(obj, theirs); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	status := *obj.GetStatus() // an inventory that was reset would lose objects
	status.Conditions = conditions.Merge(status.Conditions, status.Conditions, theirs.GetStatus().Conditions, ownConditions)
	*theirs.GetStatus() = status
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(theirs).Elem())
	return nil
}

// ownConditions are the types of the conditions that a hook must not change.
var ownConditions = []string{
	v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled, v1alpha1.ConditionDrifted, v1alpha1.ConditionRolloutStopped,
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
