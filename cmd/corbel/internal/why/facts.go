// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/pkg/component"
)

// Facts are all that an explanation depends on.
type Facts struct {
	// Object is the component, and Status is what Corbel wrote of its status.
	Object *unstructured.Unstructured
	Status component.Status
	// Reconciler is the name of the reconciler; it may be empty.
	Reconciler string
	// Answers are what was asked so far.
	Answers map[Question]Answer

	waiting []Object // components that wait for this one
}

// Question is one request.
type Question struct {
	// Verb is get or list.
	Verb string
	// Object is what is read. It has no name in a list.
	Object Object
	// Labels and Fields select objects of a list.
	Labels, Fields string
}

// String says what is asked for, such as "list Pods in namespace shop".
func (q Question) String() string {
	switch {
	case q.Verb == verbGet:
		return q.Object.String()
	case q.Object.Namespace != "":
		return fmt.Sprintf("objects of kind %s in namespace %s", q.Object.Kind, q.Object.Namespace)
	}
	return "objects of kind " + q.Object.Kind
}

const (
	verbGet  = "get"
	verbList = "list"
)

// Answer is what a question was answered with.
type Answer struct {
	// Objects are one object, or those of a list.
	Objects []unstructured.Unstructured
	// Err is why there is no answer. That an object does not exist is an answer, too.
	Err error
}

// exists reports whether the answer has an object, or is a list.
func (a Answer) exists() bool { return a.Err == nil }

// isMissing reports whether the object does not exist.
func (a Answer) isMissing() bool { return apierrors.IsNotFound(a.Err) }

var refusal = regexp.MustCompile(`User "([^"]+)" cannot ([a-z]+) resource "([^"]+)"`)

// unknown says what is not known, and why.
func unknown(q Question, err error) string {
	if m := refusal.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Sprintf("%s: %s may not %s %s", q, m[1], m[2], m[3])
	}
	return fmt.Sprintf("%s: %v", q, err)
}

// podsOf converts objects into pods; what is none is left out.
func podsOf(objects []unstructured.Unstructured) []corev1.Pod {
	return typed[corev1.Pod](objects)
}

// typed converts objects; those of another shape are left out.
func typed[T any](objects []unstructured.Unstructured) []T {
	var all []T
	for _, object := range objects {
		var one T
		if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &one) == nil {
			all = append(all, one)
		}
	}
	return all
}

// builtIn are the types that are named in messages without their group, and that are read to explain them.
var builtIn = map[string]schema.GroupVersion{
	"Pod": {Version: "v1"}, "PersistentVolumeClaim": {Version: "v1"}, "Secret": {Version: "v1"}, "ConfigMap": {Version: "v1"},
	"Namespace": {Version: "v1"}, "Event": {Version: "v1"}, "ResourceQuota": {Version: "v1"}, "Service": {Version: "v1"},
	"LimitRange":     {Version: "v1"},
	"ServiceAccount": {Version: "v1"}, "Deployment": {Group: "apps", Version: "v1"}, "StatefulSet": {Group: "apps", Version: "v1"},
	"DaemonSet": {Group: "apps", Version: "v1"}, "ReplicaSet": {Group: "apps", Version: "v1"}, "Job": {Group: "batch", Version: "v1"},
	"CronJob":                          {Group: "batch", Version: "v1"},
	"Lease":                            {Group: "coordination.k8s.io", Version: "v1"},
	"APIService":                       {Group: "apiregistration.k8s.io", Version: "v1"},
	"CustomResourceDefinition":         {Group: "apiextensions.k8s.io", Version: "v1"},
	"ValidatingWebhookConfiguration":   {Group: "admissionregistration.k8s.io", Version: "v1"},
	"MutatingWebhookConfiguration":     {Group: "admissionregistration.k8s.io", Version: "v1"},
	"ValidatingAdmissionPolicy":        {Group: "admissionregistration.k8s.io", Version: "v1"},
	"ValidatingAdmissionPolicyBinding": {Group: "admissionregistration.k8s.io", Version: "v1"},
	"StorageClass":                     {Group: "storage.k8s.io", Version: "v1"},
	"Ingress":                          {Group: "networking.k8s.io", Version: "v1"},
	"EndpointSlice":                    {Group: "discovery.k8s.io", Version: "v1"},
	"PriorityClass":                    {Group: "scheduling.k8s.io", Version: "v1"},
	"RuntimeClass":                     {Group: "node.k8s.io", Version: "v1"},
	"Role":                             {Group: "rbac.authorization.k8s.io", Version: "v1"},
	"RoleBinding":                      {Group: "rbac.authorization.k8s.io", Version: "v1"},
	"ClusterRole":                      {Group: "rbac.authorization.k8s.io", Version: "v1"},
	"ClusterRoleBinding":               {Group: "rbac.authorization.k8s.io", Version: "v1"},
}

// known returns an object of a kind that every server serves.
func known(kind, namespace, name string) Object {
	gv := builtIn[kind]
	return Object{Group: gv.Group, Version: gv.Version, Kind: kind, Namespace: namespace, Name: name}
}
