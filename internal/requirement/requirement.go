// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package requirement decides whether an object that a component requires is ready.
package requirement

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/status"
)

// conditions are compiled once.
var conditions status.Compiler

// kubernetes returns the types of Kubernetes itself. Programs add other types to the scheme of client-go.
var kubernetes = sync.OnceValue(func() *runtime.Scheme {
	known := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(known))
	return known
})

// CheckCondition returns the mistake in a condition.
func CheckCondition(condition string) error {
	_, err := conditions.Compile(condition)
	return err
}

// Status returns the readiness of a required object. An empty condition means the rules of the type for a type of Kubernetes itself, and
// that condition Ready is True for other types. The condition is valid.
func Status(object *unstructured.Unstructured, condition string) status.Status {
	program, _ := conditions.Compile(condition)
	if program != nil {
		object = visible(object)
	}
	hasReady := program == nil && !kubernetes().Recognizes(object.GroupVersionKind())
	now := status.Analyze(object, status.Options{ReadyWhen: program, Hints: status.Hints{ReadyCondition: hasReady}})
	now.Message = strings.ReplaceAll(now.Message, vocabulary.RepairedMeanwhile, "") // that is about the dependents of the object
	return now
}

// visible returns the part of an object that a condition sees. The operator reads the object with its own identity, so the author of the
// condition must not find out the rest.
func visible(object *unstructured.Unstructured) *unstructured.Unstructured {
	part := &unstructured.Unstructured{Object: map[string]any{}}
	for _, path := range [][]string{
		{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}, {"metadata", "generation"}, {"metadata", "deletionTimestamp"}, {"status"},
	} {
		if value, is, _ := unstructured.NestedFieldNoCopy(object.Object, path...); is {
			_ = unstructured.SetNestedField(part.Object, runtime.DeepCopyJSONValue(value), path...) // no parent is anything but an object
		}
	}
	return part
}
