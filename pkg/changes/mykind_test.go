// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// MyKind is the kind of the examples.
type MyKind struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MyKindSpec   `json:"spec,omitempty"`
	Status MyKindStatus `json:"status,omitempty"`
}

// MyKindSpec is what is sent to another system.
type MyKindSpec struct {
	SomeInfo  string `json:"someInfo,omitempty"`
	OtherInfo string `json:"otherInfo,omitempty"`
}

// MyKindStatus says what was sent.
type MyKindStatus struct {
	LastAppliedGeneration int64 `json:"lastAppliedGeneration,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (m *MyKind) DeepCopyObject() runtime.Object {
	c := *m
	c.ObjectMeta = *m.ObjectMeta.DeepCopy()
	return &c
}

// newStore returns a client on a server in memory that holds the object.
func newStore(obj *MyKind) client.Client {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "MyKind"}, &MyKind{})
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Group: "example.com", Version: "v1"})
	return fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&MyKind{}).WithObjects(obj).Build()
}
