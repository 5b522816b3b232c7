// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package documented

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/types"
)

type (
	// Thing stands for a component.
	Thing struct{ component.Component }

	things = component.Reconciler[*Thing]
	hook   = component.HookFunc[*Thing]
)

// The names and signatures of the component reconciler.
var (
	_ func(string, manifests.Generator, component.ReconcilerOptions) *things = component.NewReconciler[*Thing]
	_ reconcile.Reconciler                                                   = (*component.Reconciler[*Thing])(nil)
	_ func(*things, ctrl.Manager) error                                      = (*component.Reconciler[*Thing]).SetupWithManager
	_ func(context.Context, client.Client, *Thing) error                     = component.HookFunc[*Thing](nil)
	_ func(*things, hook) *things                                            = (*component.Reconciler[*Thing]).WithPostReadHook
	_ func(*things, hook) *things                                            = (*component.Reconciler[*Thing]).WithPreReconcileHook
	_ func(*things, hook) *things                                            = (*component.Reconciler[*Thing]).WithPostReconcileHook
	_ func(*things, hook) *things                                            = (*component.Reconciler[*Thing]).WithPreDeleteHook
	_ func(*things, hook) *things                                            = (*component.Reconciler[*Thing]).WithPostDeleteHook
	_ func(context.Context) (client.Client, error)                           = component.ClientFromContext

	_ = component.ReconcilerOptions{
		FieldOwner: new(""), Finalizer: new(""), DefaultServiceAccount: new(""),
		AdoptionPolicy:          new(reconciler.AdoptionPolicyIfUnowned),
		UpdatePolicy:            new(reconciler.UpdatePolicyReplace),
		DeletePolicy:            new(reconciler.DeletePolicyDelete),
		MissingNamespacesPolicy: new(reconciler.MissingNamespacesPolicyCreate),
		SchemeBuilder:           types.SchemeBuilder(nil),
	}

	_ func(error, *time.Duration) types.RetriableError                                                          = types.NewRetriableError
	_ func(component.RetryConfiguration) time.Duration                                                          = component.RetryConfiguration.GetRetryInterval
	_ func(component.RequeueConfiguration) time.Duration                                                        = component.RequeueConfiguration.GetRequeueInterval
	_ func(component.TimeoutConfiguration) time.Duration                                                        = component.TimeoutConfiguration.GetTimeout
	_ func(component.PolicyConfiguration) reconciler.AdoptionPolicy                                             = component.PolicyConfiguration.GetAdoptionPolicy
	_ func(component.PolicyConfiguration) reconciler.UpdatePolicy                                               = component.PolicyConfiguration.GetUpdatePolicy
	_ func(component.PolicyConfiguration) reconciler.DeletePolicy                                               = component.PolicyConfiguration.GetDeletePolicy
	_ func(component.PolicyConfiguration) reconciler.MissingNamespacesPolicy                                    = component.PolicyConfiguration.GetMissingNamespacesPolicy
	_ func(component.TypeConfiguration) []reconciler.TypeInfo                                                   = component.TypeConfiguration.GetAdditionalManagedTypes
	_ func(component.ImpersonationConfiguration) string                                                         = component.ImpersonationConfiguration.GetImpersonationUser
	_                                                                                                           = reconciler.TypeInfo{Group: "*.example.com", Kind: "*"}
	_ func(manifests.Generator, context.Context, string, string, types.Unstructurable) ([]client.Object, error) = manifests.Generator.Generate
)
