// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/corbel-run/corbel/pkg/steps"
	"github.com/corbel-run/corbel/test/wire"
)

// ByValue returns the conditions of a copy.
type ByValue struct{ Bucket }

func (b ByValue) Conditions() *steps.Conditions { return &b.Status.Steps }

func (b *ByValue) DeepCopyObject() runtime.Object {
	return &ByValue{Bucket: *b.Bucket.DeepCopyObject().(*Bucket)}
}

// Elsewhere keeps its steps where they are not serialised.
type Elsewhere struct {
	Bucket
	hidden steps.Conditions
}

func (b *Elsewhere) Conditions() *steps.Conditions { return &b.hidden }

func (b *Elsewhere) DeepCopyObject() runtime.Object {
	return &Elsewhere{Bucket: *b.Bucket.DeepCopyObject().(*Bucket), hidden: b.hidden.DeepCopy()}
}

// None has no conditions.
type None struct{ Bucket }

func (*None) Conditions() *steps.Conditions { return nil }

func (b *None) DeepCopyObject() runtime.Object {
	return &None{Bucket: *b.Bucket.DeepCopyObject().(*Bucket)}
}

// InConditions keeps its steps where other tools look for conditions.
type InConditions struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            struct {
		Steps steps.Conditions `json:"conditions,omitempty"`
	} `json:"status"`
}

func (b *InConditions) Conditions() *steps.Conditions { return &b.Status.Steps }

func (b *InConditions) DeepCopyObject() runtime.Object {
	c := *b
	c.ObjectMeta, c.Status.Steps = *b.ObjectMeta.DeepCopy(), b.Status.Steps.DeepCopy()
	return &c
}

func TestMistakesAreErrorsAndNothingIsWritten(t *testing.T) {
	fresh := func() Bucket {
		b := stored()
		b.ResourceVersion = "1"
		return *b
	}
	in := &InConditions{ObjectMeta: fresh().ObjectMeta}
	unread := stored()
	for _, tc := range []struct {
		name string
		obj  steps.ConditionalResource
		step steps.ConditionType
		want error
		text string
	}{
		{"a value receiver", &ByValue{fresh()}, step, steps.NotInitializedConditionsErr, "pointer as receiver"},
		{"no conditions", &None{fresh()}, step, steps.NotInitializedConditionsErr, "returned nil"},
		{"conditions that are not part of the status", &Elsewhere{Bucket: fresh()}, step, nil, "not part of the object's status"},
		{"conditions in status.conditions", in, step, nil, "status.steps"},
		{"a type that the server would refuse", new(fresh()), "provider://x", nil, "provider://x"},
		{"an object that was not read", unread, step, nil, "resourceVersion"},
		{"no object", nil, step, nil, "object"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := scheme()
			for _, obj := range []client.Object{&ByValue{}, &Elsewhere{}, &None{}, &InConditions{}} {
				s.AddKnownTypeWithName(groupVersion.WithKind(strings.TrimPrefix(fmt.Sprintf("%T", obj), "*steps_test.")), obj)
			}
			server := wire.NewServer(fake.NewClientBuilder().WithScheme(s).Build())
			err := steps.NewLock(tc.obj, server, tc.step).Execute(t.Context(), func(c steps.Condition) (steps.Condition, error) {
				t.Error("the task ran")
				return c, nil
			})
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("error: %v", err)
			}
			requests := server.Requests()
			if len(requests) != 0 || tc.obj != nil && tc.obj.Conditions() != nil && len(*tc.obj.Conditions()) != 0 {
				t.Errorf("requests %v, conditions %v", requests, tc.obj.Conditions())
			}
		})
	}
	if err := steps.NewLock(new(fresh()), newServer(), step).Execute(t.Context(), nil); err == nil {
		t.Error("no task is no error")
	}
	if err := steps.NewLock(new(fresh()), nil, step).Execute(t.Context(), makeBucket(nil)); err == nil {
		t.Error("no client is no error")
	}
}
