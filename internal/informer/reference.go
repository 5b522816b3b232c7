// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/corbel-run/corbel/internal/report"
)

// Reference is an object, or all objects of a type, that an owner depends on. A new owner of all
// objects of a type is notified once when the watch has started, because earlier changes are unknown.
type Reference = report.AwaitedObject

// scope is the scope of one watch: an object, the objects of a type in a namespace, or all objects
// of a type.
type scope struct {
	gvr             schema.GroupVersionResource
	namespace, name string
}

func scopeOf(r Reference) scope { return scope{r.Type, r.Namespace, r.Name} }

func (s scope) object() types.NamespacedName {
	return types.NamespacedName{Namespace: s.namespace, Name: s.name}
}

// isWhole reports whether the scope holds all objects of a type in a namespace or everywhere.
func (s scope) isWhole() bool { return s.name == "" }

// includes reports whether a watch of the scope shows the other one.
func (s scope) includes(other scope) bool {
	return s == other || s.gvr == other.gvr && s.isWhole() && (s.namespace == "" || s.namespace == other.namespace)
}

// including are the scopes that include this one, and itself.
func (s scope) including() []scope {
	scopes := []scope{s}
	if s.name != "" {
		scopes = append(scopes, scope{s.gvr, s.namespace, ""})
	}
	if s.namespace != "" {
		scopes = append(scopes, scope{s.gvr, "", ""})
	}
	return scopes
}

// subscription is that an owner depends on a scope.
type subscription struct {
	observed     string
	deletionOnly bool
	// notified is the resourceVersion that the owner was notified of, if it was: it is not notified
	// again of the same. A watch that lags behind the reads of the owner would otherwise notify it
	// over and over.
	notified *string
	// notifiedOfAll: the owner was notified because a watch of many objects has started.
	notifiedOfAll bool
}

// update records a later reconcile's reference to the same scope.
func (s *subscription) update(observed string, deletionOnly bool) {
	if observed != s.observed {
		// The object has changed since: the same version, or its deletion, notifies again. A
		// storage that was restored may show a version of before.
		s.notified = nil
	}
	s.observed, s.deletionOnly = observed, deletionOnly
}

// isNews reports whether the owner is to be notified of the watched version of an object, and
// remembers that. Version is empty if the object is not there; progress is how far the watch has
// come.
func (s *subscription) isNews(version, progress string) bool {
	switch {
	case version == s.observed:
		s.notified = nil
		return false
	case version != "" && s.deletionOnly:
		return false
	case isOlder(progress, s.observed):
		return false // the owner is ahead of the watch
	case s.notified != nil && *s.notified == version:
		return false
	}
	s.notified = &version
	return true
}

// newest returns the newer one of two versions, either of which may be empty.
func newest(version, other string) string {
	if version == "" || isOlder(version, other) {
		return other
	}
	return version
}

// isOlder reports whether a version is provably older than another one.
func isOlder(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order < 0
}
