// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"errors"

	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// Error is why a step failed.
type Error struct {
	Key  plan.Key
	Verb plan.Verb
	// Class says what can be done about it.
	Class Class
	// Fields are the paths of the fields that the server complained about.
	Fields []string
	// Err is the cause. Its text may be long and may hold what was sent.
	Err error

	text string
}

// Class says what can be done about an Error.
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
	return observe.Sentence(string(e.Verb) + " " + e.Key.String() + ": " + e.text)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// IsConflict tells whether the object has to be observed again, because it is
// not as the plan saw it.
func IsConflict(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Class == Conflict
}

// IsNamespaceGone tells whether nothing can be created in the namespace of the
// object, because it is being deleted or does not exist.
func IsNamespaceGone(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Class == NamespaceGone
}

// IsUnavailable tells whether there is no sense in asking the server for more just
// now: it does not answer, or has too much to do. A webhook that has too much to do
// says nothing about other objects.
func IsUnavailable(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return cluster.IsUnavailable(err) && !(ok && e.Class == Denied)
}

// IsForbidden reports whether the server refused a write because the identity has no
// right to it, or a quota or a policy of the server forbids it.
func IsForbidden(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.IsForbidden()
}

// IsForbidden is for callers that do not import this package.
func (e *Error) IsForbidden() bool { return e.Class == Forbidden }

// IsImmutable tells whether the server refused to change a field of the live object.
func IsImmutable(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Class == Immutable
}

// errChanged means that a read before a write has found another object than the
// plan saw, so that the write would be refused.
var errChanged = errors.New("it has changed since it was looked at")
