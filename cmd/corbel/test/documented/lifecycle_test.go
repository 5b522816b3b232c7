// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package documented

import (
	"context"
	"errors"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/result"
)

type (
	handler = lifecycle.Handler[*MyKind]
	options = lifecycle.Options[*MyKind]
)

// The names and signatures of the generic reconciler of the Azure Service Operator.
var (
	_ func(handler, context.Context, *MyKind) error                                    = lifecycle.Handler[*MyKind].Claim
	_ func(handler, context.Context, *MyKind, lifecycle.Commit) (result.Result, error) = lifecycle.Handler[*MyKind].CreateOrUpdate
	_ func(handler, context.Context, *MyKind, lifecycle.Commit) (result.Result, error) = lifecycle.Handler[*MyKind].Delete
	_ func(handler, context.Context, *MyKind) error                                    = lifecycle.Handler[*MyKind].UpdateStatus

	_ func(handler, options) (*lifecycle.Reconciler[*MyKind], error) = lifecycle.NewReconciler[*MyKind]
	_ reconcile.Reconciler                                           = (*lifecycle.Reconciler[*MyKind])(nil)
	_ func(ctrl.Manager, handler, options) error                     = lifecycle.SetupWithManager[*MyKind]
	_ func(ctrl.Manager, *ctrl.Builder, handler, options) error      = lifecycle.SetupWithManagerAndBuilder[*MyKind]
	_                                                                = lifecycle.Options[*MyKind]{
		Finalizer: "example.com/mykind", OperatorNamespace: "operators", ManagementPolicy: v1alpha1.ManagementPolicyManage,
	}

	_                                                    = []v1alpha1.ManagementPolicy{v1alpha1.ManagementPolicyManage, v1alpha1.ManagementPolicySkip, v1alpha1.ManagementPolicyDetachOnDelete}
	_ func(error, result.Severity, string) *result.Error = result.NewError

	_ error = &result.Error{
		Severity: result.SeverityWarning, Reason: "WaitingForOwner", Retry: result.RetryFast, After: time.Second, Err: errors.New(""),
	}
	_ = []result.Severity{result.SeverityInfo, result.SeverityWarning, result.SeverityError}
	_ = []result.Retry{result.RetryFast, result.RetrySlow, result.RetryVerySlow}
)
