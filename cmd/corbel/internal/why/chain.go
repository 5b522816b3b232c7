// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/sentence"
)

// Code classifies a cause.
type Code string

// The causes. A cause that is none of them is Unclassified: then the chain repeats what the condition says.
const (
	ImagePull         Code = "ImagePull"
	Crash             Code = "Crash"
	OutOfMemory       Code = "OutOfMemory"
	Quota             Code = "Quota"
	VolumeUnbound     Code = "VolumeUnbound"
	Unschedulable     Code = "Unschedulable"
	MissingReference  Code = "MissingReference"
	ProbeFails        Code = "ProbeFails"
	AdmissionRefused  Code = "AdmissionRefused"
	WebhookDown       Code = "WebhookDown"
	RightsMissing     Code = "RightsMissing"
	ImmutableField    Code = "ImmutableField"
	ForeignFinalizer  Code = "ForeignFinalizer"
	ForeignInstance   Code = "ForeignInstance"
	NamespaceEnds     Code = "NamespaceTerminating"
	OwnerConflict     Code = "OwnerConflict"
	FieldConflict     Code = "FieldConflict"
	TypeNotServed     Code = "TypeNotServed"
	APIServiceDown    Code = "APIServiceDown"
	HookFailed        Code = "HookFailed"
	JobFailed         Code = "JobFailed"
	Suspended         Code = "Suspended"
	KubeconfigMissing Code = "KubeconfigMissing"
	OperatorDown      Code = "OperatorDown"
	LeaseNotHeld      Code = "LeaseNotHeld"
	NotSelected       Code = "NotSelected"
	Unclassified      Code = "Unclassified"
)

// Object names an object.
type Object struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is the form that messages use, such as "Deployment shop/api".
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// resource is the type as kubectl takes it.
func (o Object) resource() string {
	if kind := strings.ToLower(o.Kind); o.Group == "" || builtIn[o.Kind].Group == o.Group {
		return kind
	}
	return strings.ToLower(o.Kind) + "." + o.Group
}

// kubectl returns a command about the object: the verb, the object, and what follows.
func (o Object) kubectl(verb string, rest ...string) string {
	return kubectl(o.Namespace, slices.Concat([]string{verb, o.resource(), o.Name}, rest)...)
}

// listing is the command that shows which objects of the type there are.
func (o Object) listing() string {
	plural := o.resource() + "s"
	if strings.HasSuffix(o.Kind, "s") {
		plural = o.resource() + "es"
	}
	return kubectl(o.Namespace, "get", plural)
}

// corbel returns a command of corbel about the object.
func (o Object) corbel(verb string, rest ...string) string {
	words := []string{"corbel", verb, o.resource(), o.Name}
	if o.Namespace != "" {
		words = append(words, "-n", o.Namespace)
	}
	return sentence.Command(append(words, rest...)...)
}

// kubectl returns a command in a namespace.
func kubectl(namespace string, words ...string) string {
	if namespace != "" {
		words = append([]string{"-n", namespace}, words...)
	}
	return sentence.Command(append([]string{"kubectl"}, words...)...)
}

// Link is an object on the way from the component to the cause.
type Link struct {
	Object Object `json:"object"`
	// Field is the path of the field that is wrong, if there is one.
	Field string `json:"field,omitempty"`
	// Message says what is wrong, without the name of the object.
	Message string `json:"message"`
	// Since is when that began, as far as the object says it.
	Since *metav1.Time `json:"since,omitempty"`
}

// Chain is why a component is not ready.
type Chain struct {
	Component Object `json:"component"`
	// Ready reports whether the condition Ready is True for the latest change of the component.
	Ready    bool           `json:"ready"`
	State    v1alpha1.State `json:"state,omitempty"`
	Reason   string         `json:"reason,omitempty"`
	Progress string         `json:"progress,omitempty"`
	// Since is when the condition Ready changed last.
	Since *metav1.Time `json:"since,omitempty"`
	// Code classifies the cause; it is empty if there is nothing to explain.
	Code Code `json:"code,omitempty"`
	// Links lead from the component to the cause, which is the last.
	Links []Link `json:"links,omitempty"`
	// HeldBack are dependents that wait for what is to blame.
	HeldBack []string `json:"heldBack,omitempty"`
	// Command is the next command to type.
	Command string `json:"command,omitempty"`
	// Notices are further sentences: also a component that is ready may have some.
	Notices []string `json:"notices,omitempty"`
	// Unknown is what could not be found out, each with the reason.
	Unknown []string `json:"unknown,omitempty"`
	// Requests is how many requests were sent, but for those of discovery.
	Requests int `json:"requests"`
}

// Cause is the last link; it is empty if there is none.
func (c Chain) Cause() Link {
	if len(c.Links) == 0 {
		return Link{}
	}
	return c.Links[len(c.Links)-1]
}
