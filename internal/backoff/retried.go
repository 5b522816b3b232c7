// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Retried returns the error in a form that the controller tries again. Anywhere in it a
// reconcile.TerminalError may hide, with which the controller would drop the object for
// good. All else is found in it by errors.Is and errors.As as before.
func Retried(err error) error {
	if !errors.Is(err, reconcile.TerminalError(nil)) {
		return err
	}
	return retried{err}
}

// retried has no Unwrap, because what it hides would be found behind it.
type retried struct{ err error }

// Error implements error.
func (r retried) Error() string { return r.err.Error() }

// Is finds everything but a terminal error.
func (r retried) Is(target error) bool {
	return !errors.Is(target, reconcile.TerminalError(nil)) && errors.Is(r.err, target)
}

// As finds everything.
func (r retried) As(target any) bool { return errors.As(r.err, target) }
