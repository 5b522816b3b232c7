// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package documented

import (
	"context"
	"errors"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

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
		Finalizer: "example.com/mykind", OperatorNamespace: "operators", ManagementPolicy: lifecycle.Manage,
	}

	_                                                          = []lifecycle.ManagementPolicy{lifecycle.Manage, lifecycle.Skip, lifecycle.DetachOnDelete}
	_ func(string) (lifecycle.ManagementPolicy, error)         = lifecycle.ParseManagementPolicy
	_ func(context.Context) lifecycle.ManagementPolicy         = lifecycle.PolicyFromContext
	_ func(error, lifecycle.Severity, string) *lifecycle.Error = lifecycle.NewError

	_ error = &lifecycle.Error{
		Severity: lifecycle.SeverityWarning, Reason: "WaitingForOwner", Retry: lifecycle.RetryFast, After: time.Second, Err: errors.New(""),
	}
	_ = []lifecycle.Severity{lifecycle.SeverityInfo, lifecycle.SeverityWarning, lifecycle.SeverityError}
	_ = []lifecycle.Retry{lifecycle.RetryFast, lifecycle.RetrySlow, lifecycle.RetryVerySlow}
)
