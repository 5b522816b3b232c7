// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// classify makes an Error of whatever went wrong with a step.
func classify(step plan.Step, err error) *Error {
	e := &Error{Key: step.Key, Verb: step.Verb, Class: Failed, Err: err, text: err.Error()}
	status, answered := errors.AsType[*apierrors.StatusError](err)
	_, notServed := errors.AsType[*cluster.NotServedError](err)
	_, unserved := errors.AsType[*cluster.UnservedPathError](err)
	switch {
	case errors.Is(err, errChanged):
		e.Class = Conflict
	case notServed || unserved:
		e.Class = NotServed
	case errors.Is(err, context.Canceled):
		e.text = "interrupted; the outcome is not known"
	case answered:
		e.read(status.ErrStatus)
	}
	if text := storageFailure(step, err.Error()); text != "" && e.Class == Failed {
		e.text = text
	}
	return e
}

// read takes over what the server's answer says.
func (e *Error) read(status metav1.Status) {
	e.Fields = fieldsIn(status)
	switch denied := isDenial(status.Message); {
	case denied:
		e.Class = Denied
	case isConflict(e.Key, e.Verb, status):
		e.Class = Conflict
	case isNamespaceGone(e.Key, status):
		e.Class = NamespaceGone
	case status.Reason == metav1.StatusReasonInvalid && isImmutable(status) && e.Verb != plan.VerbDryRun:
		e.Class = Immutable
	case status.Reason == metav1.StatusReasonInvalid || status.Reason == metav1.StatusReasonBadRequest:
		e.Class = Invalid
	case status.Reason == metav1.StatusReasonForbidden:
		e.Class = Forbidden
	}
	if e.Key.Group == "" && e.Key.Kind == "Secret" && e.Class != Conflict {
		e.text = withoutValues(e.Key, status)
	}
}

// advise says what can be done about a refusal, by the name of the reconciler. Because is
// why the step was done.
func advise(err error, because plan.Reason, name string) {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Class != Immutable {
		return
	}
	remedy := fmt.Sprintf("the annotation %s/%s: recreate-on-immutable lets it be deleted and created anew", name, v1alpha1.AnnotationUpdatePolicy)
	if because == plan.BecauseAdopted {
		// A write that is refused adopts nothing, and what is not ours is not deleted.
		remedy = "it is not adopted, and no policy deletes what is not ours: delete it yourself, or give the dependent object another name"
	}
	e.text = fmt.Sprintf("%s cannot be changed on an existing object; %s (%s)", strings.Join(e.Fields, ", "), remedy, e.text)
}

// isConflict tells whether the object is not as the plan saw it. Server-side
// apply reports another uid as a change of an immutable field.
func isConflict(key plan.Key, verb plan.Verb, status metav1.Status) bool {
	switch status.Reason {
	case metav1.StatusReasonConflict, metav1.StatusReasonAlreadyExists:
		return true
	case metav1.StatusReasonInvalid:
		return slices.Contains(fieldsIn(status), "metadata.uid")
	case metav1.StatusReasonNotFound:
		// The object vanished. On a create, it is something else that is missing.
		details := status.Details
		return verb != plan.VerbCreate && details != nil && details.Name == key.Name && details.Group == key.Group &&
			(details.Kind != "namespaces" || key.Kind == "Namespace")
	default:
		return false
	}
}

// isNamespaceGone tells whether the server refused to create something in a
// namespace that is being deleted (403 with a cause of its own) or does not exist.
func isNamespaceGone(key plan.Key, status metav1.Status) bool {
	details := status.Details
	if details == nil || key.Namespace == "" {
		return false
	}
	terminating := slices.ContainsFunc(details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Type == corev1.NamespaceTerminatingCause
	})
	missing := status.Reason == metav1.StatusReasonNotFound && details.Kind == "namespaces" && details.Name == key.Namespace
	return terminating || missing
}

func fieldsIn(status metav1.Status) []string {
	if status.Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Details.Causes {
		if cause.Field != "" && !slices.Contains(fields, cause.Field) {
			fields = append(fields, cause.Field)
		}
	}
	return fields
}

// immutability are the words in which validations say that a value was fine,
// but must not change.
var immutability = []string{
	"immutable", "may not change", "may not be changed", "cannot change", "cannot be changed",
	// "updates to statefulset spec for fields other than ... are forbidden", and the
	// same of the parameters of a StorageClass.
	"updates to ",
}

func isImmutable(status metav1.Status) bool {
	if status.Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Details.Causes, func(cause metav1.StatusCause) bool {
		message := strings.ToLower(cause.Message)
		return slices.ContainsFunc(immutability, func(words string) bool { return strings.Contains(message, words) })
	})
}

func isDenial(message string) bool {
	return strings.Contains(message, "denied the request") ||
		strings.Contains(message, "ValidatingAdmissionPolicy") && strings.Contains(message, "denied request")
}
