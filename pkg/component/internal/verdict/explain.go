// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/inventory"
	"github.com/corbel-run/corbel/internal/kubeconfig"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
)

// InvalidError is a mistake in the component itself: nothing is done until it is changed.
type InvalidError struct{ Err error }

func (e *InvalidError) Error() string { return e.Err.Error() }
func (e *InvalidError) Unwrap() error { return e.Err }

// explain gives the errors of the engine their meaning for the component. Joined errors are
// explained one by one: an object that cannot work as it is must not slow down the retry of another
// object that failed by chance. An error with a meaning of its own is left alone.
func explain(err error) error {
	checked := false // whether a right is missing
	for e := err; e != nil; e = errors.Unwrap(e) {
		switch e.(type) {
		case types.RetriableError, *types.RetriableError, *result.Stalling, *result.Waiting, *result.Generic:
			return err
		}
		if forbidden, decided := forbiddenAnswer(e); !checked && decided {
			if checked = true; forbidden {
				return result.NewWaiting(err, vocabulary.ReasonForbidden, MinInterval)
			}
		}
		if reason, ok := stallingReason(e); ok {
			return result.NewStalling(err, reason)
		}
		if status, ok := e.(*apierrors.StatusError); ok && apierrors.IsTooManyRequests(status) {
			seconds, _ := apierrors.SuggestsClientDelay(status)
			return types.NewRetriableError(err, new(time.Duration(max(seconds, 1))*time.Second))
		}
		if joined, ok := e.(interface{ Unwrap() []error }); ok {
			var explained []error
			for _, part := range joined.Unwrap() {
				explained = append(explained, explain(part))
			}
			return MessageError{Err: errors.Join(explained...), Message: err.Error()} // it may have more text than its parts
		}
	}
	return err
}

// stallingReason looks at this very error, not further down.
func stallingReason(err error) (string, bool) {
	switch refused := err.(type) {
	case *reconciler.InvalidError, *inventory.FormatError, *inventory.TooLargeError:
		return vocabulary.ReasonInvalid, true
	case *reconciler.BreakingChangeError:
		return vocabulary.ReasonBreakingChange, true
	case *InvalidError:
		return vocabulary.ReasonSpecInvalid, true
	case *reconciler.OwnerConflictError:
		return vocabulary.ReasonOwnerConflict, true
	case *reconciler.TargetChangedError:
		return vocabulary.ReasonTargetChanged, true
	case *kubeconfig.Error:
		return refused.Reason(), true
	case *cluster.AddressDeniedError:
		return vocabulary.ReasonTargetAddressDenied, true
	}
	return vocabulary.ReasonTargetIsLocal, err == target.ErrLocal || err == target.ErrPerhapsLocal
}

// IsForbidden reports whether the error means that a right is missing, and nothing more urgent.
func IsForbidden(err error) bool {
	computed := result.Compute(result.Empty, explain(err), nil)
	return computed.Outcome == result.Waited && computed.Reason == vocabulary.ReasonForbidden
}

// forbiddenAnswer looks at this very error, not further down; decided means that the wrapped error
// does not count.
func forbiddenAnswer(err error) (forbidden, decided bool) {
	if _, ok := err.(*reconciler.ForbiddenError); ok {
		return true, true
	}
	if step, ok := err.(interface{ IsForbidden() bool }); ok {
		return step.IsForbidden(), true
	}
	status, ok := err.(*apierrors.StatusError)
	return ok && apierrors.IsForbidden(status) && !apierrors.HasStatusCause(status, corev1.NamespaceTerminatingCause), ok
}
