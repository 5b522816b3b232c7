// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apiregistrationhelper "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"
)

// rules replace those of kstatus, which regards a Job as done as soon as it
// runs and an APIService as soon as it exists.
var rules = map[schema.GroupKind]func(*unstructured.Unstructured) Status{
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: judgeDefinition,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             judgeAPIService,
	{Group: "batch", Kind: "Job"}:                                     judgeJob,
	{Kind: "PersistentVolumeClaim"}:                                   judgeClaim,
}

func judgeDefinition(obj *unstructured.Unstructured) Status {
	names, _ := findCondition(obj, "NamesAccepted")
	if names.status == "False" {
		return Status{Readiness: Failed, Message: explain(names.reason, names.message)}
	}
	established, _ := findCondition(obj, "Established")
	// While the definition is being installed, Established is False for a moment.
	if established.status == "False" && established.reason != "Installing" {
		return Status{Readiness: Failed, Message: explain(established.reason, established.message)}
	}
	if names.status == "True" && established.status == "True" {
		return Status{Readiness: Ready}
	}
	return Status{Message: "is not established yet"}
}

func judgeAPIService(obj *unstructured.Unstructured) Status {
	service := &apiregistrationv1.APIService{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, service); err != nil {
		return Status{Message: "the status cannot be understood: " + err.Error()}
	}
	switch available := apiregistrationhelper.GetAPIServiceConditionByType(service, apiregistrationv1.Available); {
	case available == nil:
		return Status{Message: "is not available yet"}
	case available.Status == apiregistrationv1.ConditionTrue:
		return Status{Readiness: Ready}
	default:
		return Status{Message: explain("is not available", explain(available.Reason, available.Message))}
	}
}

func judgeJob(obj *unstructured.Unstructured) Status {
	if complete, _ := findCondition(obj, "Complete"); complete.status == "True" {
		return Status{Readiness: Ready}
	}
	if failed, _ := findCondition(obj, "Failed"); failed.status == "True" {
		return Status{Readiness: Failed, Message: explain(failed.reason, failed.message)}
	}
	// A suspended Job did not do its work. Whoever suspends Jobs on purpose,
	// as queues do, wants us to wait until they resume it.
	if suspended, _ := field(obj.Object, "spec", "suspend").(bool); suspended {
		return Status{Message: "is suspended"}
	}
	if text(obj.Object, "status", "startTime") == "" {
		return Status{Message: "is not started yet"}
	}
	completions := count(obj.Object, 0, "spec", "completions")
	if completions == 0 {
		return Status{Message: "is running"}
	}
	return Status{Message: fmt.Sprintf("%d of %d completions", count(obj.Object, 0, "status", "succeeded"), completions)}
}

func judgeClaim(obj *unstructured.Unstructured) Status {
	switch phase := text(obj.Object, "status", "phase"); phase {
	case "Bound":
		return Status{Readiness: Ready}
	case "Lost":
		return Status{Readiness: Failed, Message: "has lost its volume"}
	default:
		return Status{Message: "is not bound to a volume (with the binding mode WaitForFirstConsumer it waits for a pod that uses it)"}
	}
}
