// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// Error is why a step failed.
type Error struct {
	Key  plan.Key
	Verb plan.Verb
	// Class tells how to react to the error.
	Class Class
	// Fields are the paths of the fields that the server complained about.
	Fields []string
	// Err is the cause. Its text may be long and may hold the content of the request.
	Err error

	text string
	// advice tells the user how to repair the failure, if that is known.
	advice string
}

// Class is the kind of an Error, by the reaction that it needs.
type Class string

const (
	// Conflict: the object is not as the plan saw it. Nothing was written;
	// observe it again and make a new plan.
	Conflict Class = "Conflict"
	// Immutable: the manifest changes fields that cannot be changed.
	Immutable Class = "Immutable"
	// Invalid: the server found mistakes in the manifest.
	Invalid Class = "Invalid"
	// Denied: an admission webhook or policy refused the write.
	Denied Class = "Denied"
	// Breaking: the manifest changes a definition so that objects or clients of its type break. Nothing was
	// written.
	Breaking Class = "Breaking"
	// Forbidden: we may not do that.
	Forbidden Class = "Forbidden"
	// NotServed: the server does not serve the type.
	NotServed Class = "NotServed"
	// NamespaceGone: nothing can be created in the namespace, because it is
	// being deleted or does not exist. Nothing was written; observe the namespace.
	NamespaceGone Class = "NamespaceGone"
	// Failed: anything else; the outcome may be unknown.
	Failed Class = "Failed"
)

// Error is one line of bounded length that names the verb and the object.
func (e *Error) Error() string {
	text := e.text
	if e.advice != "" {
		text = e.advice + " (" + text + ")"
	}
	return observe.Sentence(string(e.Verb) + " " + e.Key.String() + ": " + text)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// AnswerOf returns the message of the server's answer, which may hold the content of the request.
// It must not be reported.
func AnswerOf(err error) string { return cmp.Or(messageOf(err), err.Error()) }

// ClassOf returns the class of the failure of a step; it is empty if there is none.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	if err != nil {
		return Failed
	}
	return ""
}

// IsConflict reports whether the object has to be observed again, because it is
// not as the plan saw it.
func IsConflict(err error) bool { return ClassOf(err) == Conflict }

// IsNamespaceGone reports whether nothing can be created in the namespace of the
// object, because it is being deleted or does not exist.
func IsNamespaceGone(err error) bool { return ClassOf(err) == NamespaceGone }

// IsUnavailable reports whether further requests make no sense at the moment: the server does not
// answer, or has too much to do. An overloaded webhook does not matter to other objects.
func IsUnavailable(err error) bool {
	return cluster.IsUnavailable(err) && ClassOf(err) != Denied
}

// IsForbidden reports whether the server refused a write because the user has no
// right to it, or a quota or a policy of the server forbids it.
func IsForbidden(err error) bool { return ClassOf(err) == Forbidden }

// IsForbidden is for callers that do not import this package.
func (e *Error) IsForbidden() bool { return e.Class == Forbidden }

// IsMistake reports whether the manifest cannot be written under its update policy, whatever the object is.
func IsMistake(err error) bool {
	return ClassOf(err) == Invalid && isUntyped(messageOf(err))
}

// errChanged means that a read before a write has found another object than the
// plan saw, so that the write would be refused.
var errChanged = errors.New("it has changed since it was looked at")

// classify makes an Error of the failure of a step.
func classify(step plan.Step, err error) *Error {
	e := &Error{Key: step.Key, Verb: step.Verb, Class: Failed, Err: err, text: err.Error()}
	status, answered := errors.AsType[*apierrors.StatusError](err)
	_, notServed := errors.AsType[*cluster.NotServedError](err)
	_, unserved := errors.AsType[*cluster.UnservedPathError](err)
	_, breaking := errors.AsType[breakingError](err)
	switch {
	case breaking:
		e.Class = Breaking
	case errors.Is(err, errChanged):
		e.Class = Conflict
	case notServed || unserved:
		e.Class = NotServed
	case errors.Is(err, context.Canceled):
		e.text = "interrupted; the outcome is not known"
	case answered:
		e.classifyStatus(status.ErrStatus)
	}
	if e.Class == Failed {
		e.advice = storageFailure(step, err.Error())
	}
	return e
}

// conceal removes the server's message from the failure of a step, if the object is a Secret or the
// reconcile of the context is confidential.
func conceal(ctx context.Context, result *plan.Result) {
	e, ok := errors.AsType[*Error](result.Err)
	if !ok || e.Class == Breaking || errors.Is(e.Err, context.Canceled) {
		return
	}
	if confidential.Covers(ctx, e.Key.GroupKind()) {
		e.text = confidential.Describe(e.Err)
		result.Observation.Message = observe.Sentence(e.Error())
	}
}

func (e *Error) classifyStatus(status metav1.Status) {
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
	case status.Reason == metav1.StatusReasonInvalid || status.Reason == metav1.StatusReasonBadRequest || isUntyped(status.Message):
		e.Class = Invalid
	case status.Reason == metav1.StatusReasonForbidden:
		e.Class = Forbidden
	}
}

// adviseOnImmutable sets the advice about a refusal, by the name of the reconciler. Because is the
// reason of the step.
func adviseOnImmutable(err error, because plan.Reason, name string) {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Class != Immutable {
		return
	}
	remedy := fmt.Sprintf("the annotation %s/%s: recreate-on-immutable lets it be deleted and created anew", name, v1alpha1.AnnotationUpdatePolicy)
	if e.Key.Group == "" && e.Key.Kind == "PersistentVolumeClaim" {
		remedy += ", without its data"
	}
	if because == plan.ReasonAdopted {
		// A write that is refused adopts nothing, and an object that is not ours is not deleted.
		remedy = "it is not adopted, and no policy deletes what is not ours: delete it yourself, or give the dependent object another name"
	}
	e.advice = fmt.Sprintf("%s cannot be changed on an existing object; %s", strings.Join(e.Fields, ", "), remedy)
}

// isConflict reports whether the object is not as the plan saw it. Server-side
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

// isNamespaceGone reports whether the server refused to create something in a
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
		if path := confidential.Path(cause.Field); path != "" && !slices.Contains(fields, path) {
			fields = append(fields, path)
		}
	}
	return fields
}

// immutability are the words in which validations report that a value was fine, but must not
// change.
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

// allocatedWords are the words in which validations, quotas and webhooks report that another object
// holds a value that this one asks for: "provided port is already allocated", "exceeded quota",
// "host and path are already defined".
var allocatedWords = []string{"already", "exceeded quota"}

// IsAllocationConflict reports whether the server or a webhook refused to create the object,
// because something that it asks for, such as a port, is already allocated.
func IsAllocationConflict(err error) bool {
	e, ok := errors.AsType[*Error](err)
	creates := ok && (e.Verb == plan.VerbCreate || e.Verb == plan.VerbDryRun)
	if !creates || e.Class != Invalid && e.Class != Denied && e.Class != Forbidden {
		return false
	}
	message := strings.ToLower(messageOf(e.Err))
	return slices.ContainsFunc(allocatedWords, func(words string) bool { return strings.Contains(message, words) })
}

// uncalledWebhook matches the server's message that it could not call an admission webhook.
var uncalledWebhook = regexp.MustCompile(`^Internal error occurred: failed calling webhook "([^"]+)"`)

// FailureOf describes the failure of a step for the planner.
func FailureOf(err error) plan.Failure {
	failure := plan.Failure{Immutable: ClassOf(err) == Immutable, AlreadyAllocated: IsAllocationConflict(err), Message: err.Error()}
	if found := uncalledWebhook.FindStringSubmatch(AnswerOf(err)); found != nil {
		failure.Webhook = found[1]
	}
	return failure
}

// storageFailure returns advice if the storage of the cluster did not accept an object; it is empty
// if something else is wrong.
func storageFailure(step plan.Step, message string) string {
	switch {
	case strings.Contains(message, "etcdserver: request is too large"),
		strings.Contains(message, "trying to send message larger than max"),
		strings.Contains(message, "Request entity too large"):
		return "the object is too large" + sizeOf(step) +
			": the storage of a cluster takes 1.5 MiB by default; move content of it to other objects"
	case strings.Contains(message, "etcdserver: mvcc: database space exceeded"):
		return "the storage of the cluster is full; an administrator has to free space in etcd or raise its quota"
	case strings.Contains(message, "etcdserver: "):
		return "the storage of the cluster did not accept it, and it is tried again"
	default:
		return ""
	}
}

// sizeOf describes the size of the manifest of a step, if it has one.
func sizeOf(step plan.Step) string {
	if step.Desired == nil {
		return ""
	}
	manifest := step.Desired.Unpacked().Manifest
	if manifest == nil {
		return ""
	}
	data, err := json.Marshal(manifest.Object)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (its manifest has %d KiB)", len(data)>>10)
}
