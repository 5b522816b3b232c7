// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"reflect"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/types"
)

// Component is a custom resource that stands for a set of dependent objects. It
// is implemented by the pointer to an operator's own API type.
//
// A component, or its spec, may implement any of the ...Configuration interfaces
// of this package to tune how it is reconciled.
type Component interface {
	client.Object
	// GetSpec returns the spec as the parameters of the generator: the result of
	// ParametersOf, or a spec with a method ToUnstructured, usually as a pointer into
	// the component.
	GetSpec() types.Unstructurable
	// GetStatus returns the part of the status that belongs to Corbel, as a
	// pointer into the component. It must not be nil.
	GetStatus() *Status
}

// Status is the part of a component's status that belongs to Corbel. Embed it
// inline into the status of your own type.
//
// The custom resource definition must have the status subresource, and should default
// status.observedGeneration to -1, because tools mistake an empty status for a good one. The
// documentation of v1alpha1.ComponentStatus has the markers for both, and columns for kubectl.
type Status = v1alpha1.ComponentStatus

// A component type implements the ...Configuration interfaces of this file itself or in
// its spec. If both implement one of them, the component counts. A spec may have pointer
// receivers even if GetSpec returns it by value; a spec that is a nil pointer counts as
// none. The ...Spec types of this package, embedded in a spec, implement the interfaces.
//
// Values may come from users, so an invalid one does not fail the operator: the component
// stalls, by default with the reason SpecInvalid, until it changes.

// PlacementConfiguration sets the namespace and the name that the dependent objects of a
// component are rendered with. Without it, they are those of the component.
type PlacementConfiguration interface {
	// GetDeploymentNamespace returns the namespace that the generator receives, and that
	// namespaced objects without a namespace are created in. It must be a DNS label. An
	// empty value means the namespace of the component.
	GetDeploymentNamespace() string
	// GetDeploymentName returns the name that the generator receives. It must be a DNS
	// subdomain. An empty value means the name of the component.
	GetDeploymentName() string
}

// ClientConfiguration selects the cluster that a component deploys into. Without it, that
// is the cluster that the component lives in.
type ClientConfiguration interface {
	// GetKubeConfig returns the content of a kubeconfig for the target cluster. Nil means
	// the cluster that the component lives in. Any other value must be usable: an empty
	// slice is an error, so that a kubeconfig that is missing is not mistaken for none. The
	// default service account of the reconciler does not apply if it is not nil.
	GetKubeConfig() []byte
}

// ImpersonationConfiguration sets the user that the dependent objects of a component
// are read and written as. Without it, that is the user in the kubeconfig of the
// component or, in the local cluster, the default service account of the reconciler or
// else the operator itself.
type ImpersonationConfiguration interface {
	// GetImpersonationUser returns the user to impersonate, such as
	// "system:serviceaccount:shop:deployer". An empty namespace in the user name of a
	// service account means the namespace of the component; a malformed name of a service
	// account is an error. An empty value means the default of the interface.
	GetImpersonationUser() string
	// GetImpersonationGroups returns the groups to impersonate. Groups without a user are
	// an error. A service account needs none: the API server derives its groups.
	GetImpersonationGroups() []string
}

// SuspensionConfiguration suspends a component. Without it, a component is suspended only
// by its management policy, or by the annotation suspend.
type SuspensionConfiguration interface {
	// IsSuspended reports whether the dependent objects are left as they are. While it
	// does, the timeout does not run and no hook is called. The deletion of the component
	// goes on regardless.
	IsSuspended() bool
}

// SuspensionTermsConfiguration says until when and why a component is suspended, if
// IsSuspended reports that it is. Without it, the suspension has no end and no reason.
type SuspensionTermsConfiguration interface {
	// GetSuspendUntil returns when the suspension ends by itself. The zero time means never.
	GetSuspendUntil() time.Time
	// GetSuspendReason returns why the component is suspended. It stands in the message of
	// condition Ready.
	GetSuspendReason() string
}

// RollbackConfiguration says whether a component is rolled back when a revision of it fails.
// Without it, that is what the option RollbackOnFailure of the reconciler says.
type RollbackConfiguration interface {
	// GetRollbackOnFailure reports whether the last revision that was ready is applied if a
	// dependent object of a later one fails, or is not ready within the timeout. Nil means the
	// option of the reconciler.
	GetRollbackOnFailure() *bool
}

// RequeueConfiguration sets how often a component is reconciled although no event asks
// for it. Without it, that is every 10 minutes.
type RequeueConfiguration interface {
	// GetRequeueInterval returns the time between two such reconciles, which come up to
	// 10 % earlier, at random, so that components spread. A value that is zero or negative
	// means 10 minutes. The floor is 1 second and the ceiling 10 years. Each reconcile
	// renders the manifests, so prefer more than 1 minute.
	GetRequeueInterval() time.Duration
}

// RetryConfiguration sets when a component is reconciled again after its generator or a
// hook asked for a retry. Without it, the requeue interval applies.
type RetryConfiguration interface {
	// GetRetryInterval returns the delay after an error that asks for a retry and names no
	// delay of its own (types.RetriableError). A value that is zero or negative means the
	// requeue interval. The floor is 1 second and the ceiling 10 years; prefer more than
	// 1 minute. Ordinary errors are retried by the rate limiter of the controller.
	GetRetryInterval() time.Duration
}

// TimeoutConfiguration sets the time limit for the dependent objects of a component to
// become ready. Without it, the requeue interval applies.
type TimeoutConfiguration interface {
	// GetTimeout returns the time after which a component that is not ready changes from
	// the state Processing to Error, with the reason Timeout. Reconciling continues. The
	// time starts again with each change of the component or its manifests, and a restart
	// of the operator does not reset it. A deletion tries for as long to read the content
	// of a namespace that was created for the dependents. A value that is zero or negative
	// means the requeue interval. The floor is 1 second and the ceiling 10 years; prefer
	// more than 1 minute.
	GetTimeout() time.Duration
}

// PolicyConfiguration sets the policies for all dependent objects of a component. For
// each policy the annotation of the object counts first, where there is one, then the
// method, then the option of the reconciler. A value that is not one of the constants of
// its type is an error that lists them.
type PolicyConfiguration interface {
	// GetAdoptionPolicy returns what happens if an object exists already and has no owner
	// or another one. An empty value means the option AdoptionPolicy. The annotation of
	// objects is adoption-policy.
	GetAdoptionPolicy() reconciler.AdoptionPolicy
	// GetUpdatePolicy returns how objects are written. An empty value means the option
	// UpdatePolicy. The annotation of objects is update-policy.
	GetUpdatePolicy() reconciler.UpdatePolicy
	// GetDeletePolicy returns whether objects are deleted or orphaned when the manifests
	// no longer contain them, or when the component is deleted. An empty value means the
	// option DeletePolicy. The annotation of objects is delete-policy.
	GetDeletePolicy() reconciler.DeletePolicy
	// GetMissingNamespacesPolicy returns whether a namespace is created if objects need it
	// and no manifest defines it. An empty value means the option MissingNamespacesPolicy.
	// There is no annotation.
	GetMissingNamespacesPolicy() reconciler.MissingNamespacesPolicy
}

// DriftConfiguration sets what happens when a dependent object is changed or deleted by
// another client than the reconciler.
type DriftConfiguration interface {
	// GetDriftPolicy returns the policy for all dependent objects of the component. An
	// empty value means the option DriftPolicy; a value that does not exist is an error.
	// The annotation drift-policy on the component takes precedence over the method, and
	// the one on an object over both.
	GetDriftPolicy() v1alpha1.DriftPolicy
}

// TypeConfiguration names types that no manifest of the component defines, but that its
// dependent objects bring into being, such as those of the providers of Crossplane.
type TypeConfiguration interface {
	// GetAdditionalManagedTypes returns patterns of such types. The group is the name of
	// an API group, "*" for all, or "*." and a suffix, where the asterisk stands for one or
	// more DNS labels; the core group cannot be named. The kind is the name of a kind, or
	// "*" for all. Dependent objects of these types are applied late and deleted early, and
	// instances that do not belong to the component block its deletion. A nil or empty
	// slice means none. A malformed pattern is an error, and blocks the deletion of a
	// component that still has dependents.
	GetAdditionalManagedTypes() []reconciler.TypeInfo
}

// ReapplyConfiguration sets how often the dependent objects of a component are written
// although neither they nor their manifests changed. Without it, they are not.
type ReapplyConfiguration interface {
	// GetReapplyInterval returns the time between two such writes of an object. A value
	// that is zero or negative means never; the floor is 1 minute. The annotation
	// reapply-interval of an object takes precedence.
	GetReapplyInterval() time.Duration
}

// PatchesConfiguration changes the dependent objects of a component after the generator
// rendered them.
type PatchesConfiguration interface {
	// GetPatches returns the patches, which are applied in their order. A patch that is
	// malformed or cannot be applied is an error.
	GetPatches() []v1alpha1.Patch
	// GetImages returns the images to replace. They are replaced after the patches.
	GetImages() []v1alpha1.Image
}

// specOf returns the spec itself, which ParametersOf may have wrapped.
func specOf(c interface{ GetSpec() types.Unstructurable }) any { return renders.SpecOf(c.GetSpec()) }

// configurationOf returns the component as a C, or else its spec.
func configurationOf[C any](c interface{ GetSpec() types.Unstructurable }) (C, bool) {
	if configuration, ok := c.(C); ok {
		return configuration, true
	}
	spec := specOf(c)
	if configuration, ok := spec.(C); ok {
		return configuration, !renders.IsNil(spec)
	}
	// The methods of the ready-made specs have pointer receivers, but GetSpec may
	// return the spec by value.
	if value := reflect.ValueOf(spec); value.IsValid() && value.Kind() == reflect.Struct {
		addressable := reflect.New(value.Type())
		addressable.Elem().Set(value)
		configuration, ok := addressable.Interface().(C)
		return configuration, ok
	}
	var none C
	return none, false
}
