// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// checkGeneration returns why the status is not about the latest change, or nil.
// A status of an earlier generation says nothing, not even that something failed.
func checkGeneration(obj *unstructured.Unstructured, hints Hints) *Status {
	generation, _ := integer(field(obj.Object, "metadata", "generation"))
	value := field(obj.Object, "status", "observedGeneration")
	if value == nil && hints.ObservedGeneration {
		if ready, found := findCondition(obj, "Ready"); found {
			value = ready.observedGeneration
		}
		if value == nil {
			return &Status{Message: "status.observedGeneration is not set yet"}
		}
	}
	if value == nil || generation == 0 {
		return nil
	}
	observed, ok := integer(value)
	if !ok {
		return &Status{Message: fmt.Sprintf("status.observedGeneration is not an integer but %T", value)}
	}
	if observed != generation {
		return &Status{Message: "the latest change is not observed yet"}
	}
	return nil
}

// checkHints returns which hint is not met, or nil.
func checkHints(obj *unstructured.Unstructured, hints Hints) *Status {
	if hints.ReadyCondition {
		if s := requireTrue(obj, "Ready"); s != nil {
			return s
		}
	}
	for _, name := range hints.Conditions {
		if s := requireTrue(obj, name); s != nil {
			return s
		}
	}
	return nil
}

// requireTrue returns why the condition is not True, or nil.
func requireTrue(obj *unstructured.Unstructured, name string) *Status {
	c, found := findCondition(obj, name)
	switch {
	case !found:
		return &Status{Message: "has no condition " + name + " yet"}
	case c.status != "True":
		return &Status{Message: explain("condition "+name+" is "+c.status, explain(c.reason, c.message))}
	default:
		return nil
	}
}
