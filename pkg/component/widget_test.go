// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/types"
)

// widget is the component of the tests that need no server.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   widgetSpec   `json:"spec,omitempty"`
	Status widgetStatus `json:"status,omitempty"`
}

type widgetSpec struct {
	PlacementSpec     `json:",inline"`
	ClientSpec        `json:",inline"`
	ImpersonationSpec `json:",inline"`
	SuspensionSpec    `json:",inline"`
	RequeueSpec       `json:",inline"`
	RetrySpec         `json:",inline"`
	TimeoutSpec       `json:",inline"`
	PolicySpec        `json:",inline"`
	DriftSpec         `json:",inline"`
	TypeSpec          `json:",inline"`
	ReapplySpec       `json:",inline"`
	PatchesSpec       `json:",inline"`

	Size int               `json:"size,omitempty"`
	Refs *widgetReferences `json:"refs,omitempty"`
}

type widgetReferences struct {
	Password *SecretKeyReference              `json:"password,omitempty" fallbackKeys:"password,token"`
	Settings *ConfigMapReference              `json:"settings,omitempty"`
	Secrets  []SecretReference                `json:"secrets,omitempty"`
	Texts    map[string]ConfigMapKeyReference `json:"texts,omitempty"`
	Own      *ownReference                    `json:"own,omitempty"`
}

// ownReference is a reference that the operator's author made.
type ownReference struct {
	Name   string                        `json:"name"`
	loaded string                        `json:"-"`
	load   func(*widget) (string, error) `json:"-"`
}

func (r *ownReference) Load(_ context.Context, _ client.Client, w *widget) (err error) {
	r.loaded, err = r.load(w)
	return err
}

func (r *ownReference) Digest() string { return r.loaded }

func (s *widgetSpec) ToUnstructured() map[string]any { return Parameters(s) }

type widgetStatus struct {
	Status `json:",inline"`

	Note string `json:"note,omitempty"`
}

// panickingMethod names the method of the spec, or GetSpec, that panics.
var panickingMethod string

func panicIn(method string) {
	if method == panickingMethod {
		panic(method)
	}
}

func (s *widgetSpec) IsSuspended() bool {
	panicIn("IsSuspended")
	return s.SuspensionSpec.IsSuspended()
}
func (s *widgetSpec) GetTimeout() time.Duration {
	panicIn("GetTimeout")
	return s.TimeoutSpec.GetTimeout()
}
func (s *widgetSpec) GetRequeueInterval() time.Duration {
	panicIn("GetRequeueInterval")
	return s.RequeueSpec.GetRequeueInterval()
}
func (s *widgetSpec) GetDeploymentName() string {
	panicIn("GetDeploymentName")
	return s.PlacementSpec.GetDeploymentName()
}
func (s *widgetSpec) GetImpersonationUser() string {
	panicIn("GetImpersonationUser")
	return s.ImpersonationSpec.GetImpersonationUser()
}

func (w *widget) GetSpec() types.Unstructurable { panicIn("GetSpec"); return &w.Spec }
func (w *widget) GetStatus() *Status            { return &w.Status.Status }

func (w *widget) DeepCopyObject() runtime.Object {
	content, err := json.Marshal(w)
	if err != nil {
		panic(err)
	}
	duplicate := &widget{}
	if err := json.Unmarshal(content, duplicate); err != nil {
		panic(err)
	}
	if w.Spec.Refs != nil {
		refs := *w.Spec.Refs
		if refs.Own != nil {
			refs.Own = new(*refs.Own)
		}
		duplicate.Spec.Refs = &refs
	}
	return duplicate
}

var widgetKind = schema.GroupKind{Group: "test.corbel.run", Kind: "Widget"}

func newWidget() *widget {
	return &widget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "main", UID: "uid-1", Generation: 1}}
}

// duration makes the duration of a spec.
func duration(text string) *types.Duration {
	d := &types.Duration{}
	if err := json.Unmarshal([]byte(`"`+text+`"`), d); err != nil {
		panic(err)
	}
	return d
}
