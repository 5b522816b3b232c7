// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package documented

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/steps"
)

// The names and signatures of the package konditions.
var (
	_ error = steps.LockNotReleasedErr
	_ error = steps.NotInitializedConditionsErr

	_ = steps.Condition{Type: steps.ConditionType("Bucket"), Status: steps.ConditionInitialized, Reason: "because"}
	_ = []steps.ConditionStatus{
		steps.ConditionInitialized, steps.ConditionCompleted, steps.ConditionCreated, steps.ConditionTerminating,
		steps.ConditionTerminated, steps.ConditionError, steps.ConditionLocked,
	}
	_ func(*steps.Condition) *steps.Condition               = (*steps.Condition).DeepCopy
	_ func(*steps.Condition, *steps.Condition)              = (*steps.Condition).DeepCopyInto
	_ func(*steps.Condition, ...steps.ConditionStatus) bool = (*steps.Condition).StatusIsOneOf

	_ steps.Conditions                                                        = []steps.Condition{}
	_ func(steps.Conditions, steps.ConditionStatus) bool                      = steps.Conditions.AnyWithStatus
	_ func(*steps.Conditions) steps.Conditions                                = (*steps.Conditions).DeepCopy
	_ func(*steps.Conditions, *steps.Conditions)                              = (*steps.Conditions).DeepCopyInto
	_ func(steps.Conditions, steps.ConditionType) steps.Condition             = steps.Conditions.FindOrInitializeFor
	_ func(steps.Conditions, steps.ConditionStatus) *steps.Condition          = steps.Conditions.FindStatus
	_ func(steps.Conditions, steps.ConditionType) *steps.Condition            = steps.Conditions.FindType
	_ func(*steps.Conditions, steps.ConditionType) bool                       = (*steps.Conditions).RemoveConditionWith
	_ func(*steps.Conditions, steps.Condition) error                          = (*steps.Conditions).SetCondition
	_ func(steps.Conditions, steps.ConditionType, steps.ConditionStatus) bool = steps.Conditions.TypeHasStatus

	_ func(steps.ConditionalResource) *steps.Conditions    = steps.ConditionalResource.Conditions
	_ func(*steps.Lock) steps.Condition                    = (*steps.Lock).Condition
	_ func(*steps.Lock, context.Context, steps.Task) error = (*steps.Lock).Execute
	_ func(steps.Condition) (steps.Condition, error)       = steps.Task(nil)
)

// The example of its documentation.
var _ = func(ctx context.Context, res steps.ConditionalResource, c client.Client, create, remove func() error) (ctrl.Result, error) {
	lock := steps.NewLock(res, c, steps.ConditionType("Bucket"))
	if err := lock.Execute(ctx, func(condition steps.Condition) (steps.Condition, error) {
		switch condition.Status {
		case steps.ConditionTerminating:
			if err := remove(); err != nil {
				return condition, err
			}
			condition.Status, condition.Reason = steps.ConditionTerminated, "Bucket deleted"
		case steps.ConditionInitialized:
			if err := create(); err != nil {
				return condition, err
			}
			condition.Status, condition.Reason = steps.ConditionCreated, "Bucket Created"
		}
		return condition, c.Status().Update(ctx, res)
	}); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, nil
}
