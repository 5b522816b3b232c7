// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/corbel-run/corbel/pkg/steps"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/wire"
)

var groupVersion = schema.GroupVersion{Group: "steps.test.corbel.run", Version: "v1"}

var key = client.ObjectKey{Namespace: "default", Name: "a"}

const step = steps.ConditionType("Bucket")

// Bucket is a custom resource for something outside the cluster.
type Bucket struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BucketSpec   `json:"spec,omitempty"`
	Status BucketStatus `json:"status,omitempty"`
}

// BucketSpec is what is wanted.
type BucketSpec struct {
	Region string `json:"region,omitempty"`
}

// BucketStatus is what is the case.
type BucketStatus struct {
	BucketName string             `json:"bucketName,omitempty"`
	Phase      string             `json:"phase,omitempty"`
	Steps      steps.Conditions   `json:"steps,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Conditions implements steps.ConditionalResource.
func (b *Bucket) Conditions() *steps.Conditions { return &b.Status.Steps }

// GetConditions implements conditions.Getter.
func (b *Bucket) GetConditions() []metav1.Condition { return b.Status.Conditions }

// SetConditions implements conditions.Setter.
func (b *Bucket) SetConditions(conditions []metav1.Condition) { b.Status.Conditions = conditions }

// DeepCopyObject implements runtime.Object.
func (b *Bucket) DeepCopyObject() runtime.Object {
	c := *b
	c.ObjectMeta = *b.ObjectMeta.DeepCopy()
	c.Status.Steps = b.Status.Steps.DeepCopy()
	c.Status.Conditions = slices.Clone(b.Status.Conditions)
	return &c
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(groupVersion.WithKind("Bucket"), &Bucket{})
	metav1.AddToGroupVersion(s, groupVersion)
	return s
}

// newServer returns an API server in memory with these objects.
func newServer(objects ...client.Object) *wire.Server {
	return wire.NewServer(fake.NewClientBuilder().WithScheme(scheme()).WithStatusSubresource(&Bucket{}).WithObjects(objects...).Build())
}

// stored is a bucket as a server has it.
func stored(conditions ...steps.Condition) *Bucket {
	return &Bucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "uid-1", CreationTimestamp: metav1.Unix(1000, 0)},
		Status:     BucketStatus{Steps: conditions},
	}
}

// read returns the bucket as the client has it.
func read(t testing.TB, c client.Reader) *Bucket {
	t.Helper()
	b := &Bucket{}
	check.NoError(t, c.Get(context.WithoutCancel(t.Context()), key, b))
	return b
}
