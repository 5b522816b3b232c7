// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/pkg/types"
)

// NotServedError means that the server proved that it does not serve a type:
// either it does not list the group and version, or its complete list of the
// version's types lacks the kind.
type NotServedError struct {
	// Group, Version and Kind are the type; Version is empty if no version is served.
	Group, Version, Kind string
}

// Error names the type.
func (e *NotServedError) Error() string {
	if e.Version == "" {
		return fmt.Sprintf("the server serves the type %s in no version", schema.GroupKind{Group: e.Group, Kind: e.Kind})
	}
	gv := schema.GroupVersion{Group: e.Group, Version: e.Version}
	return fmt.Sprintf("the server does not serve the type %s of %s", e.Kind, gv)
}

// PendingTypesError means that the server lists a version of a group, but does
// not know its types: they are just coming or going. Ask again in a moment.
type PendingTypesError struct {
	Group, Version string
}

// Error names the version of the group.
func (e *PendingTypesError) Error() string {
	return fmt.Sprintf("the server lists %s, but does not know its types yet", schema.GroupVersion{Group: e.Group, Version: e.Version})
}

// UnservedPathError means that the cached facts about a type do not fit: the server answered "not
// found" for the path of the whole type, not for an object, or the object does not fit the scope of
// the type. The type was probably removed or its scope changed; only [Types] can find out which.
// The type is already dropped there when a caller sees this error, so resolving it again asks the
// server. Nothing was read or written.
type UnservedPathError struct {
	Resource Resource
	Err      error
}

// Error names the type.
func (e *UnservedPathError) Error() string {
	return fmt.Sprintf("%s of %s cannot be addressed: %v", e.Resource.GVR.Resource, e.Resource.GVR.GroupVersion(), e.Err)
}

// Unwrap returns the server's answer.
func (e *UnservedPathError) Unwrap() error { return e.Err }

// protocolError says that the server does not behave like the API server of a cluster: it
// redirects, answers without an end, or with something else than it was asked for.
func protocolError(format string, arguments ...any) error { return fmt.Errorf(format, arguments...) }

// IsNotFound reports whether the error proves that the named object of this type does not
// exist, by the proof of [types.IsGone].
func IsNotFound(err error, resource Resource, name string) bool {
	if !types.IsGone(err, name) {
		return false
	}
	status, _ := statusOf(err)
	return status.Details.Group == resource.GVR.Group && status.Details.Kind == resource.GVR.Resource
}

// isUnservedPath reports whether a 404 is about a path: it names no object whatsoever.
func isUnservedPath(err error) bool {
	status, ok := statusOf(err)
	if !ok || status.Code != http.StatusNotFound {
		return false
	}
	return status.Details == nil || status.Details.Name == "" || apierrors.IsUnexpectedServerError(err)
}

func statusOf(err error) (metav1.Status, bool) {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return metav1.Status{}, false
	}
	return status.ErrStatus, true
}

// IsUnreachable reports whether the error means that no answer came from the
// server at all. The outcome of a write is unknown then.
func IsUnreachable(err error) bool {
	_, failed := errors.AsType[*url.Error](err)
	return failed || errors.Is(err, context.DeadlineExceeded)
}

// IsUnavailable reports whether there is no sense in asking the server for more just now: no answer
// came from it, or it is overloaded.
func IsUnavailable(err error) bool {
	return IsUnreachable(err) || apierrors.IsTooManyRequests(err)
}
