// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Getter is an object with conditions.
type Getter interface {
	client.Object
	// GetConditions returns the conditions. The caller must not change them.
	GetConditions() []metav1.Condition
}

// Setter is an object whose conditions can be replaced.
type Setter interface {
	Getter
	// SetConditions replaces all conditions.
	SetConditions(conditions []metav1.Condition)
}

// For makes an object whose conditions live in a slice of their own a Setter.
// The slice is usually a field of the object's status.
func For(obj client.Object, conditions *[]metav1.Condition) Setter {
	return &adapter{Object: obj, conditions: conditions}
}

// ObjectOf returns the object itself, without the adapter that For put around
// it. Only the object itself can be sent to a server.
func ObjectOf(obj client.Object) client.Object {
	if a, ok := obj.(*adapter); ok {
		return a.Object
	}
	return obj
}

// adapter embeds the object, so that it has its name and metadata.
type adapter struct {
	client.Object
	conditions *[]metav1.Condition
}

func (a *adapter) GetConditions() []metav1.Condition { return *a.conditions }

func (a *adapter) SetConditions(conditions []metav1.Condition) { *a.conditions = conditions }

// DeepCopyObject returns a copy of the object itself: a copy of the adapter
// would still point to the conditions of the original.
func (a *adapter) DeepCopyObject() runtime.Object { return a.Object.DeepCopyObject() }
