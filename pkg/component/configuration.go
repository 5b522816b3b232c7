// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"reflect"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// The PlacementConfiguration interface is meant to be implemented by components (or their spec) which allow to
// place the dependent objects elsewhere than beside the component.
type PlacementConfiguration interface {
	// GetDeploymentNamespace returns the namespace that the generator gets, and
	// that namespaced objects without a namespace are put into. If it is empty, it
	// is the component's own namespace.
	GetDeploymentNamespace() string
	// GetDeploymentName returns the name that the generator gets. If it is empty,
	// it is the component's own name.
	GetDeploymentName() string
}

// The ClientConfiguration interface is meant to be implemented by components (or their spec) which allow to
// deploy into another cluster.
type ClientConfiguration interface {
	// GetKubeConfig returns the kubeconfig of the target cluster. Nil means the
	// cluster that the component lives in; anything else that holds no usable
	// kubeconfig is an error.
	GetKubeConfig() []byte
}

// The ImpersonationConfiguration interface is meant to be implemented by components (or their spec) whose
// dependent objects are written on behalf of somebody else than the operator.
type ImpersonationConfiguration interface {
	// GetImpersonationUser returns the user to impersonate, such as
	// "system:serviceaccount:shop:deployer". If the namespace in the name of a
	// service account is empty, it is the component's own. If the user is empty,
	// the default service account of the reconciler is impersonated, if there is one.
	GetImpersonationUser() string
	// GetImpersonationGroups returns the groups to impersonate.
	GetImpersonationGroups() []string
}

// The SuspensionConfiguration interface is meant to be implemented by components (or their spec) which can be
// suspended.
type SuspensionConfiguration interface {
	// IsSuspended tells whether the dependent objects are to be left alone. It
	// does not affect the deletion of the component.
	IsSuspended() bool
}

// The RequeueConfiguration interface is meant to be implemented by components (or their spec) which offer
// tweaking the requeue interval (by default, it would be 10 minutes).
type RequeueConfiguration interface {
	// Get requeue interval. Should be greater than 1 minute. Values that are not
	// positive mean the default; values below 1 second mean 1 second.
	GetRequeueInterval() time.Duration
}

// The RetryConfiguration interface is meant to be implemented by components (or their spec) which offer
// tweaking the retry interval (by default, it would be the value of the requeue interval).
type RetryConfiguration interface {
	// Get retry interval. Should be greater than 1 minute. Values that are not
	// positive mean the default; values below 1 second mean 1 second.
	GetRetryInterval() time.Duration
}

// The TimeoutConfiguration interface is meant to be implemented by components (or their spec) which offer
// tweaking the processing timeout (by default, it would be the value of the requeue interval).
type TimeoutConfiguration interface {
	// Get timeout. Should be greater than 1 minute. Values that are not positive
	// mean the default; values below 1 second mean 1 second. It is also how long a
	// deletion tries to read the content of a namespace that was created for the dependents.
	GetTimeout() time.Duration
}

// The PolicyConfiguration interface is meant to be implemented by components (or their spec) which offer
// tweaking policies affecting the dependents handling.
type PolicyConfiguration interface {
	// Get adoption policy.
	// Must return a valid AdoptionPolicy, or the empty string (then the reconciler/framework default applies).
	GetAdoptionPolicy() reconciler.AdoptionPolicy
	// Get update policy.
	// Must return a valid UpdatePolicy, or the empty string (then the reconciler/framework default applies).
	GetUpdatePolicy() reconciler.UpdatePolicy
	// Get delete policy.
	// Must return a valid DeletePolicy, or the empty string (then the reconciler/framework default applies).
	GetDeletePolicy() reconciler.DeletePolicy
	// Get namespace auto-creation policy.
	// Must return a valid MissingNamespacesPolicy, or the empty string (then the reconciler/framework default applies).
	GetMissingNamespacesPolicy() reconciler.MissingNamespacesPolicy
}

// The DriftConfiguration interface is meant to be implemented by components (or their spec) which offer
// tweaking what happens when somebody else changes or deletes their dependents.
type DriftConfiguration interface {
	// Get drift policy.
	// Must return a valid DriftPolicy, or the empty string (then the reconciler/framework default applies).
	// The annotation drift-policy on the component takes precedence.
	GetDriftPolicy() reconciler.DriftPolicy
}

// The TypeConfiguration interface is meant to be implemented by components (or their spec) which allow
// to specify additional managed types.
type TypeConfiguration interface {
	// Get additional managed types; instances of these types are handled differently during
	// apply and delete; foreign instances of these types will block deletion of the component.
	// The fields of the returned TypeInfo structs can be concrete api groups, kinds,
	// or wildcards ("*"); in addition, groups can be specified as a pattern of the form "*.<suffix>",
	// where the wildcard matches one or multiple dns labels.
	GetAdditionalManagedTypes() []reconciler.TypeInfo
}

// The ReapplyConfiguration interface is meant to be implemented by components (or their spec) which want
// their dependent objects refreshed although nothing changed.
type ReapplyConfiguration interface {
	// Get reapply interval. Values that are not positive mean never; values below
	// 1 minute mean 1 minute.
	GetReapplyInterval() time.Duration
}

// The PatchesConfiguration interface is meant to be implemented by components (or their spec) whose users
// may change the dependent objects after they were rendered.
type PatchesConfiguration interface {
	// GetPatches returns the patches, which are applied one after the other.
	GetPatches() []v1alpha1.Patch
	// GetImages returns the images to replace, after the patches.
	GetImages() []v1alpha1.Image
}

// configurationOf returns the component as a C, or else its spec.
func configurationOf[C any](c Component) (C, bool) {
	if configuration, ok := c.(C); ok {
		return configuration, true
	}
	spec := c.GetSpec()
	if configuration, ok := spec.(C); ok {
		return configuration, !isNil(spec)
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

// isNil tells whether the value is nil, or an interface that holds a nil pointer.
func isNil(value any) bool {
	v := reflect.ValueOf(value)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
