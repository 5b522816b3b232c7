// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package confidential

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// hidden is an error with another text. errors.Is and errors.As still find the error that it wraps.
type hidden struct {
	text string
	err  error
}

func (e *hidden) Error() string { return e.text }
func (e *hidden) Unwrap() error { return e.err }

// Format keeps verbs such as %+v from printing the wrapped error.
func (e *hidden) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(e.text)) }

// IsSecret reports whether objects of the kind, or of its list, are Secrets.
func IsSecret(kind schema.GroupKind) bool {
	return kind.Group == "" && (kind.Kind == "Secret" || kind.Kind == "SecretList")
}

// Covers reports whether answers of a server about objects of a kind must not be repeated.
func Covers(ctx context.Context, kind schema.GroupKind) bool { return IsSecret(kind) || Is(ctx) }

// Answer returns the error of a request about an object of a kind. If the answer is covered, its
// text is the text of [Describe].
func Answer(ctx context.Context, kind schema.GroupKind, err error) error {
	if err == nil || !Covers(ctx, kind) {
		return err
	}
	return &hidden{Describe(err), err}
}

var (
	// withoutContent matches messages of a server without the content of an object: which right is
	// missing, and which webhook, policy or quota has refused a request.
	withoutContent = regexp.MustCompile(`^(?:admission webhook "[a-z0-9.-]+" denied the request|Internal error occurred: failed calling webhook "[a-z0-9.-]+"|` +
		`[a-z0-9.-]+(?: "[^"]*")? is forbidden: (?:` +
		`User "[^"]*" cannot [a-z]+ resource "[^"]*" in API group "[^"]*"(?: in the namespace "[^"]*"| at the cluster scope)|` +
		`ValidatingAdmissionPolicy '[a-z0-9.-]+'(?: with binding '[a-z0-9.-]+')? denied request|exceeded quota: [a-z0-9.-]+))`)
	// fieldPath matches a path, with keys of maps as far as they are names. Only labels and annotations have names with a slash.
	fieldPath = regexp.MustCompile(`^\.?\w+(?:\.(?:labels|annotations)\[[-._=/a-zA-Z0-9]+\]|\.[-\w]+|\[[-._=a-zA-Z0-9]+\])*`)
)

// Describe returns the parts of the answer of a server that do not depend on the content of an object: its reason, and the
// paths of fields with the types of the causes. An error that is no answer keeps its text.
func Describe(err error) string {
	answer, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		if root := rootOf(err); runtime.IsMissingKind(root) || runtime.IsMissingVersion(root) {
			return "the answer of the server cannot be read" // the error quotes the answer
		}
		return err.Error()
	}
	status := answer.ErrStatus
	text := "the server refused it" + reasonOf(status)
	if fixed := withoutContent.FindString(status.Message); fixed != "" {
		return text + ": " + fixed
	}
	var causes []string
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			if path := Path(cause.Field); path != "" && cause.Type != "" {
				causes = append(causes, path+": "+causeOf(cause.Type))
			}
		}
	}
	if len(causes) > 0 {
		text += ": " + strings.Join(causes, "; ")
	}
	return text
}

func rootOf(err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}

// Path returns a path to a field without keys that are no names.
func Path(path string) string {
	known := fieldPath.FindString(path)
	if known != path {
		known += "[...]"
	}
	return known
}

func causeOf(cause metav1.CauseType) string {
	if text := field.ErrorType(cause).String(); !strings.HasPrefix(text, "<") {
		return text
	}
	return string(cause)
}

// reasonOf returns the reason and the code of an answer, as far as it has them.
func reasonOf(status metav1.Status) string {
	switch {
	case status.Reason != "" && status.Code != 0:
		return fmt.Sprintf(" (%s, %d)", status.Reason, status.Code)
	case status.Reason != "":
		return fmt.Sprintf(" (%s)", status.Reason)
	case status.Code != 0:
		return strings.TrimRight(fmt.Sprintf(" (%d %s", status.Code, http.StatusText(int(status.Code))), " ") + ")"
	default:
		return ""
	}
}

// At returns the error with the place where it happened, such as a file with its line, before it. The place is never
// hidden.
func At(place string, err error) error { return &located{place, err} }

type located struct {
	place string
	err   error
}

func (e *located) Error() string { return e.place + ": " + e.err.Error() }
func (e *located) Unwrap() error { return e.err }
func (e *located) Place() string { return e.place }

// Failure returns the error of a generator. In a confidential reconcile its text is replaced by the
// places of the errors that it wraps, and by the server's answer; the log gets the text.
func Failure(ctx context.Context, err error) error {
	if err == nil || !Is(ctx) {
		return err
	}
	logf.FromContext(ctx).Info("an error is not reported as it is, because a Secret was read", "error", err.Error())
	text := "it failed"
	if places := placesOf(err); len(places) > 0 {
		text += " at " + strings.Join(places, ", ")
	}
	if _, answered := errors.AsType[*apierrors.StatusError](err); answered {
		text += ": " + Describe(err)
	}
	return &hidden{text + "; the log of the operator has the error, which may hold a value of a Secret that was read", err}
}

// maxPlaces bounds the places that are reported.
const maxPlaces = 5

// placesOf returns the places of the errors that an error wraps. A place within another one is part of it.
func placesOf(err error) (places []string) {
	if located, ok := err.(interface{ Place() string }); ok {
		inner := placesOf(errors.Unwrap(err))
		if len(inner) == 0 {
			return []string{located.Place()}
		}
		for i := range inner {
			inner[i] = located.Place() + ": " + inner[i]
		}
		return inner
	}
	if inner := errors.Unwrap(err); inner != nil {
		return placesOf(inner)
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, inner := range joined.Unwrap() {
			if places = append(places, placesOf(inner)...); len(places) >= maxPlaces {
				return places[:maxPlaces]
			}
		}
	}
	return places
}
