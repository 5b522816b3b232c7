// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"testing"
	"time"

	"github.com/corbel-run/corbel/pkg/types"
)

// wilful has configurations of its own, besides those of its spec.
type wilful struct{ widget }

func (w *wilful) GetRequeueInterval() time.Duration { return time.Hour }

// byValue returns its spec by value.
type byValue struct{ widget }

type valueSpec struct{ TimeoutSpec }

func (s valueSpec) ToUnstructured() map[string]any { return nil }

func (v *byValue) GetSpec() types.Unstructurable {
	return valueSpec{TimeoutSpec{Timeout: duration("3m")}}
}

// specless returns nil in several ways.
type specless struct {
	widget
	spec types.Unstructurable
}

func (s *specless) GetSpec() types.Unstructurable { return s.spec }

// embeddedPointer has a part of its spec by pointer.
type embeddedPointer struct{ widget }

type pointerSpec struct{ *RetrySpec }

func (s *pointerSpec) ToUnstructured() map[string]any { return nil }

func (e *embeddedPointer) GetSpec() types.Unstructurable { return &pointerSpec{} }

func TestConfigurationOf(t *testing.T) {
	withSpec := &wilful{widget: *newWidget()}
	withSpec.Spec.RequeueInterval = duration("1m")
	withSpec.Spec.RetryInterval = duration("2m")

	if own, ok := configurationOf[RequeueConfiguration](withSpec); !ok || own.GetRequeueInterval() != time.Hour {
		t.Error("the component does not come before its spec")
	}
	if own, ok := configurationOf[RetryConfiguration](withSpec); !ok || own.GetRetryInterval() != 2*time.Minute {
		t.Error("the spec is not asked")
	}
	if own, ok := configurationOf[TimeoutConfiguration](&byValue{}); !ok || own.GetTimeout() != 3*time.Minute {
		t.Error("a spec that is returned by value does not count")
	}
	if _, ok := configurationOf[RetryConfiguration](&byValue{}); ok {
		t.Error("a spec by value has a configuration that it does not implement")
	}
	if own, ok := configurationOf[RetryConfiguration](&embeddedPointer{}); !ok || own.GetRetryInterval() != 0 {
		t.Error("a nil part of a spec is not the default")
	}
	var none *widgetSpec
	for name, spec := range map[string]types.Unstructurable{
		"nil": nil, "nil pointer": none, "nil map": types.UnstructurableMap(nil), "map": types.UnstructurableMap{},
	} {
		if _, ok := configurationOf[RequeueConfiguration](&specless{spec: spec}); ok {
			t.Errorf("%s: a spec that is no RequeueConfiguration is one", name)
		}
	}
}

func TestReadyMadeSpecsCanBeNil(t *testing.T) {
	var (
		placement     *PlacementSpec
		clientSpec    *ClientSpec
		impersonation *ImpersonationSpec
		suspension    *SuspensionSpec
		requeue       *RequeueSpec
		retry         *RetrySpec
		timeout       *TimeoutSpec
		policy        *PolicySpec
		drift         *DriftSpec
		typ           *TypeSpec
		reapply       *ReapplySpec
	)
	if placement.GetDeploymentNamespace()+placement.GetDeploymentName()+impersonation.GetImpersonationUser() != "" ||
		clientSpec.GetKubeConfig() != nil || impersonation.GetImpersonationGroups() != nil || suspension.IsSuspended() ||
		requeue.GetRequeueInterval()+retry.GetRetryInterval()+timeout.GetTimeout()+reapply.GetReapplyInterval() != 0 ||
		policy.GetAdoptionPolicy() != "" || policy.GetUpdatePolicy() != "" || policy.GetDeletePolicy() != "" ||
		policy.GetMissingNamespacesPolicy() != "" || drift.GetDriftPolicy() != "" || typ.GetAdditionalManagedTypes() != nil {
		t.Error("a nil spec says something")
	}
}
