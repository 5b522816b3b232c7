// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/internal/guard"
)

// Readiness tells whether an object does its work.
type Readiness int

const (
	// NotReady means that work on the object is in progress.
	NotReady Readiness = iota
	// Ready means that the object does the work that its manifest asks for.
	Ready
	// Failed means that the object reports a failure.
	Failed
	// ReadinessUnknown means that the type declares status conditions, but that the status is
	// still empty. Whether that counts as ready depends on how long
	// ago the object was written, which the caller knows.
	ReadinessUnknown
)

// String returns the name of the constant.
func (r Readiness) String() string {
	switch r {
	case NotReady:
		return "NotReady"
	case Ready:
		return "Ready"
	case Failed:
		return "Failed"
	case ReadinessUnknown:
		return "ReadinessUnknown"
	default:
		return "Readiness(?)"
	}
}

// Status is the readiness of an object.
type Status struct {
	Readiness Readiness
	// Message says why the object is not ready, such as "1 of 3 replicas
	// ready", in one line of at most 200 bytes. It is empty for Ready. It stays
	// the same as long as nothing of interest changes.
	Message string
}

// Hints announce the future content of the status of an object, so that its absence means that no
// controller has looked at the object yet.
type Hints struct {
	// ObservedGeneration: there will be a status.observedGeneration, or one
	// in the Ready condition.
	ObservedGeneration bool
	// ReadyCondition: there will be a condition of type Ready. It must be True.
	ReadyCondition bool
	// Conditions are types of conditions that must all be True.
	Conditions []string
}

// Options are facts about an object beyond its content.
type Options struct {
	Hints Hints
	// ReadyWhen replaces the rules of the object's type; nil means that these
	// hold. Deletion, observed generations and Hints count in any case.
	ReadyWhen *Program
	// DeclaresConditions is set if the schema of the type declares status
	// conditions (see DeclaresConditions), so the readiness of an object with an empty status is unknown.
	DeclaresConditions bool
}

// Analyze returns the status of an object. The object must be as complete as the server
// answered it; it is not changed.
func Analyze(obj *unstructured.Unstructured, options Options) Status {
	if obj == nil || obj.Object == nil {
		return Status{Message: "the object is not known"}
	}
	s := analyze(obj, options)
	s.Message = sentence(s.Message)
	switch {
	case s.Readiness == Ready:
		s.Message = ""
	case s.Message == "" && s.Readiness == Failed:
		s.Message = "has failed"
	case s.Message == "":
		s.Message = "is not ready"
	}
	return s
}

func analyze(obj *unstructured.Unstructured, options Options) Status {
	if field(obj.Object, "metadata", "deletionTimestamp") != nil {
		return Status{Message: "is being deleted"}
	}
	if s := checkGeneration(obj, options.Hints); s != nil {
		return *s
	}
	s := byType(obj)
	if options.ReadyWhen != nil {
		s = options.ReadyWhen.evaluateStatus(obj, s)
	}
	if s.Readiness == Failed {
		return s
	}
	if unmet := checkHints(obj, options.Hints); unmet != nil {
		return *unmet
	}
	if s.Readiness == Ready && options.ReadyWhen == nil && options.DeclaresConditions && empty(obj.Object["status"]) {
		return Status{Readiness: ReadinessUnknown, Message: "has no status yet"}
	}
	return s
}

// byType applies the rules of the object's type.
func byType(obj *unstructured.Unstructured) Status {
	gk := obj.GroupVersionKind().GroupKind()
	if rule, strict := rules[gk]; strict {
		return rule(obj)
	}
	result, err := compute(obj)
	if err != nil {
		return Status{Message: "the status cannot be understood: " + err.Error()}
	}
	s := translate(result)
	if rule, waits := awaited[gk]; waits && s.Readiness == Ready {
		return rule(obj)
	}
	if correct, known := corrections[gk]; known {
		s = correct(obj, s)
	}
	return s
}

// compute calls kstatus, which panics if a status does not have the shape that
// its type prescribes.
func compute(obj *unstructured.Unstructured) (result *kstatus.Result, err error) {
	defer guard.Into(&err)
	result, err = kstatus.Compute(obj)
	if err == nil && result == nil {
		err = fmt.Errorf("no rule applies")
	}
	return result, err
}

func translate(result *kstatus.Result) Status {
	message := result.Message
	if len(result.Conditions) > 0 {
		message = explain(result.Conditions[0].Reason, result.Message)
	}
	switch result.Status {
	case kstatus.CurrentStatus:
		return Status{Readiness: Ready}
	case kstatus.FailedStatus:
		return Status{Readiness: Failed, Message: message}
	default:
		return Status{Message: message}
	}
}

// empty reports whether a status has no content: it is absent, or all there is are empty lists,
// maps and strings.
func empty(status any) bool {
	switch v := status.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, value := range v {
			if !empty(value) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

// checkGeneration returns why the status is not about the latest change, or nil. A status of an
// earlier generation does not count, not even a failure.
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

// DeclaresConditions reports whether a version of a type has status conditions in
// its schema. The argument is the content of a CustomResourceDefinition of
// apiextensions.k8s.io/v1. An object of such a type with an empty status has
// most likely not been looked at by its controller yet.
func DeclaresConditions(crd map[string]any, version string) bool {
	versions, _ := field(crd, "spec", "versions").([]any)
	for _, entry := range versions {
		if text(entry, "name") == version {
			return field(entry, "schema", "openAPIV3Schema", "properties", "status", "properties", "conditions") != nil
		}
	}
	return false
}
