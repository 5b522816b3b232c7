// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
)

// state is what the status of a component says.
type state struct {
	ready           bool
	reason, message string
	progress        string
	objects         []string
}

// stateOf reads the status of a component. A status that cannot be read says nothing.
func stateOf(live *unstructured.Unstructured) state {
	status := component.Status{}
	content, _, _ := unstructured.NestedMap(live.Object, "status")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status); err != nil {
		return state{message: "the status cannot be read: " + err.Error()}
	}
	_, reason, message := status.GetState()
	s := state{
		ready:  status.IsReady() && status.ObservedGeneration == live.GetGeneration(),
		reason: reason, message: message, progress: status.Progress,
	}
	for _, item := range status.Inventory.Items {
		s.objects = append(s.objects, nameOf(item))
	}
	slices.Sort(s.objects)
	return s
}

func nameOf(item v1alpha1.InventoryItem) string {
	if item.Namespace == "" {
		return item.Kind + " " + item.Name
	}
	return item.Kind + " " + item.Namespace + "/" + item.Name
}

// String returns the state as text; that of a component that is ready lists its objects.
func (s state) String() string {
	if s.reason == "" {
		return "is not reconciled yet"
	}
	if !s.ready {
		return fmt.Sprintf("%s %s: %s", s.reason, s.progress, s.message)
	}
	return fmt.Sprintf("%s %s: %s\n  %s", s.reason, s.progress, s.message, strings.Join(s.objects, "\n  "))
}
