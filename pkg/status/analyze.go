// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Analyze judges an object. The object must be as complete as the server
// answered it; it is not changed.
func Analyze(obj *unstructured.Unstructured, options Options) Status {
	if obj == nil || obj.Object == nil {
		return Status{Message: "the object is not known"}
	}
	s := judge(obj, options)
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

func judge(obj *unstructured.Unstructured, options Options) Status {
	if field(obj.Object, "metadata", "deletionTimestamp") != nil {
		return Status{Message: "is being deleted"}
	}
	if s := checkGeneration(obj, options.Hints); s != nil {
		return *s
	}
	s := byType(obj)
	if options.ReadyWhen != nil {
		s = options.ReadyWhen.judge(obj, s)
	}
	if s.Readiness == Failed {
		return s
	}
	if unmet := checkHints(obj, options.Hints); unmet != nil {
		return *unmet
	}
	if s.Readiness == Ready && options.ReadyWhen == nil && options.DeclaresConditions && empty(obj.Object["status"]) {
		return Status{Readiness: Unjudged, Message: "has no status yet"}
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

// compute calls kstatus, which takes for granted that a status has the shape
// that its type prescribes.
func compute(obj *unstructured.Unstructured) (result *kstatus.Result, err error) {
	defer func() {
		if value := recover(); value != nil {
			result, err = nil, fmt.Errorf("it has an unexpected shape (%v)", value)
		}
	}()
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

// empty tells whether a status says nothing: it is absent, or all there is are
// empty lists, maps and strings.
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
