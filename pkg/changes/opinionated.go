// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pendingSuffix makes of a finalizer the mark of an object whose creation was not
// handled yet.
const pendingSuffix = "-pending"

// OpinionatedReconciler makes a controller keep a finalizer of its own on every
// object, from before the first call until Deleted was handled. So no deletion is
// missed while the process is down, and a restart tells handled objects (Resynced)
// from new ones (Created). Changes of status or metadata alone are no changes. It is given
// to NewController as it is: what wraps it again hides it, so wrap what is inside.
type OpinionatedReconciler struct {
	Reconciler
	// Finalizer is the finalizer, such as example.com/notify. No two controllers may
	// share it. A second one with the suffix -pending is on an object until Created
	// was handled. To rename it is to handle all objects anew, and to leave the old
	// one on them. Required.
	Finalizer string
}

func (o OpinionatedReconciler) accepts(obj client.Object) error {
	if _, ok := o.Reconciler.(opinionated); ok {
		return errors.New("an opinionated reconciler is wrapped in another one, which would ignore its Finalizer")
	}
	return acceptedBy(o.Reconciler, obj)
}

func (o OpinionatedReconciler) finalizer() string { return o.Finalizer }

// OpinionatedWatcher is a Watcher that is used as [OpinionatedReconciler] describes.
type OpinionatedWatcher[T client.Object] struct {
	Watcher[T]
	// Finalizer is the finalizer, as that of an OpinionatedReconciler. Required.
	Finalizer string
}

func (o *OpinionatedWatcher[T]) finalizer() string { return o.Finalizer }

// opinionated is a Reconciler that wants a finalizer.
type opinionated interface{ finalizer() string }

// acceptedBy asks the reconciler what stands against a controller for such objects.
func acceptedBy(r Reconciler, obj client.Object) error {
	if isNil(r) {
		return errors.New("the reconciler is nil")
	}
	if r, ok := r.(interface{ accepts(client.Object) error }); ok {
		return r.accepts(obj)
	}
	return nil
}

// checkFinalizer reports why the API server would refuse one of the two finalizers
// on some kind: built-in kinds demand a domain.
func checkFinalizer(finalizer string) error {
	if finalizer == "" {
		return errors.New("the Finalizer is missing")
	}
	problems := validation.IsQualifiedName(finalizer + pendingSuffix)
	if !strings.Contains(finalizer, "/") {
		problems = append(problems, "it needs a domain in front, as in example.com/notify")
	}
	if len(problems) > 0 {
		return fmt.Errorf("the Finalizer %q cannot be used with the suffix %s: %s", finalizer, pendingSuffix, strings.Join(problems, "; "))
	}
	return nil
}
