// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/lease"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/lifecycle"
)

// Two releases of one operator in two namespaces have two digest keys, and elect two
// leaders. Neither knows of which manifests the other has made the dependents, so they
// would overwrite each other's changes. The inventory names the operator that sealed it, so
// each finds the other. An operator waits as long as the lease of the other one is held, and
// takes over when that operator is gone.

const (
	// reasonOperatorConflict means that two operators of the same name, in different namespaces, reconcile
	// the component. The message names both namespaces, and says whether this one waits.
	//
	// Conditions: OperatorConflict True; Ready is not affected
	// Event type: Warning
	// What to do: remove one of the two operators, or let them select different components with the option
	// LabelSelector.
	reasonOperatorConflict = "OperatorConflict"
	// otherOperatorDelay is when an operator that waits looks at the lease again.
	//
	// Limit: the time until an operator that waits for another one of its name looks at the lease again.
	otherOperatorDelay = time.Minute
)

// operator is this operator as inventories name it.
func (h *handler[T]) operator(ctx context.Context) (*v1alpha1.InventoryOperator, error) {
	key, err := h.digestKey.Get(ctx)
	if err != nil {
		return nil, err
	}
	me := &v1alpha1.InventoryOperator{Key: digest.Hasher{Key: key}.ID(), Namespace: h.settings.operatorNamespace}
	if lock := h.settings.leaderLock; lock != nil {
		me.Lease = lock.Describe()
	}
	return me, nil
}

// meetOperator compares the operator that sealed the inventory with this one. If the
// lease of the other one is held, the reconcile ends, and nothing but a condition is written.
func (h *handler[T]) meetOperator(ctx context.Context, obj T, commit lifecycle.Commit) error {
	other := obj.GetStatus().Inventory.Operator
	if other == nil {
		return nil
	}
	me, err := h.operator(ctx)
	if err != nil {
		return err
	}
	known, uid, setter := &h.remembered(obj).operators, obj.GetUID(), conditionsOf(obj)
	// Operators that select different components hand over what changes its labels.
	switch alive := h.settings.selector == nil && h.isAlive(ctx, *other, *me); {
	case other.Key == me.Key || other.Namespace == me.Namespace:
		// The other operator may wait, and set the condition: it changes nothing else.
		condition := conditions.Get(setter, v1alpha1.ConditionOperatorConflict)
		lasts := condition != nil && h.now().Sub(condition.LastTransitionTime.Time) < conflictLife
		if known.setOurs(uid, h.now()) && !lasts {
			conditions.Delete(setter, v1alpha1.ConditionOperatorConflict)
		}
		return nil
	case alive:
		message := h.noteConflict(obj, other, me, "the operator in "+me.Namespace+" waits as long as the lease "+other.Lease+" is held")
		if err := commit(ctx); err != nil {
			return err
		}
		return &lifecycle.RequeueError{After: backoff.Jitter(otherOperatorDelay, verdict.Jitter, backoff.Random()), Err: errors.New(message)}
	case known.returned(uid):
		h.noteConflict(obj, other, me, "they overwrite each other's changes of its dependent objects")
		return nil
	default: // the other one is gone, and this one reconciles the component
		*known = operators{}
		conditions.Delete(setter, v1alpha1.ConditionOperatorConflict)
		return nil
	}
}

// noteConflict sets the condition, and sends an event if the conflict is new.
func (h *handler[T]) noteConflict(obj T, other, me *v1alpha1.InventoryOperator, does string) (message string) {
	message = fmt.Sprintf("two operators named %s reconcile this object, one in namespace %s and one in namespace %s: %s; remove one of them",
		h.settings.name, other.Namespace, me.Namespace, does)
	conditions.Set(conditionsOf(obj), metav1.Condition{
		Type: v1alpha1.ConditionOperatorConflict, Status: metav1.ConditionTrue, Reason: reasonOperatorConflict, Message: message,
	})
	if h.remembered(obj).operators.setConflict(obj.GetUID(), h.now()) {
		h.telemetry.Warn(obj, reasonOperatorConflict, "Reconcile", message)
	}
	return message
}

// isAlive reports whether the lease of an operator is held. It is false if the operator has no
// lease, or if the lease cannot be read.
func (h *handler[T]) isAlive(ctx context.Context, other, me v1alpha1.InventoryOperator) bool {
	namespace, name, ok := strings.Cut(other.Lease, "/")
	if !ok || other.Lease == me.Lease || other.Key == me.Key {
		return false
	}
	if only := h.settings.onlyNamespace; only != "" && namespace != only {
		return false // it may not be read
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	typed := &coordinationv1.Lease{}
	if h.local.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, live) != nil ||
		runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, typed) != nil {
		return false
	}
	return lease.Of(typed, h.now()).Held
}
