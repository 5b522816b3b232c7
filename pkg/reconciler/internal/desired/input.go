// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
	"github.com/corbel-run/corbel/pkg/status"
)

// Input is what the desired objects are built from.
type Input struct {
	// Name is the name of the reconciler: the prefix of labels and annotations.
	Name  string
	Owner plan.Owner
	// Objects are the rendered objects. They are not changed.
	Objects []client.Object
	// Scheme tells the kinds of typed objects that do not say it themselves;
	// it may be nil.
	Scheme *runtime.Scheme
	// Namespace is for namespaced objects that set none. If it is empty,
	// such objects are mistakes.
	Namespace string
	Defaults  policy.Set
	// IgnoreRules name fields to ignore besides those of the annotations.
	IgnoreRules []policy.IgnoreRule
	// ComponentDigest becomes part of the digest of the objects that are to be
	// written whenever the component changes.
	ComponentDigest string
	// HooksOnly leaves out what does not run before or after a deletion. Its
	// mistakes do not matter then, nor whether its types are served.
	HooksOnly bool
	// Managed are patterns of types that appear at run time.
	Managed []v1alpha1.TypeInfo
	// Resolve is called once for each type.
	Resolve Resolve
	Hasher  digest.Hasher
	// Compiler compiles ready-when expressions; it may be nil.
	Compiler *status.Compiler
}

// Resolve tells whether a type is served and whether its objects live in
// namespaces. [ErrUnmanageable] means that its objects cannot be dependents; any
// other error means that this is not known at the moment, which is no mistake of
// the user.
type Resolve func(ctx context.Context, gvk schema.GroupVersionKind) (namespaced, served bool, err error)

// ErrUnmanageable means that the server does not let the objects of a type be
// created, read and deleted. It keeps nothing of a SubjectAccessReview, for
// example, but answers it.
var ErrUnmanageable = errors.New("objects of the type cannot be created, read and deleted")

// InvalidError means that the objects cannot be applied as they are.
type InvalidError struct {
	// Err lists every mistake.
	Err error
}

// Error returns the mistakes, each in a line that names its object.
func (e *InvalidError) Error() string { return e.Err.Error() }

// Unwrap returns the joined mistakes.
func (e *InvalidError) Unwrap() error { return e.Err }
