// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package summarize

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/result"
)

// Helper ends passes over one object.
type Helper struct {
	recorder Recorder
	patcher  *patch.Helper
}

// NewHelper returns a Helper. The recorder may be nil; the patch helper is the
// one that was made when the object had been read.
func NewHelper(recorder Recorder, patchHelper *patch.Helper) *Helper {
	return &Helper{recorder: recorder, patcher: patchHelper}
}

// SummarizeAndPatch ends the pass, see the package. The result and the error are
// what Reconcile returns. When the object on the server is no longer the one that
// the pass was about, nothing is written, and instead of an error there is a short
// delay: the next pass finds out.
func (h *Helper) SummarizeAndPatch(ctx context.Context, obj conditions.Setter, options ...Option) (ctrl.Result, error) {
	if h.patcher == nil {
		return ctrl.Result{}, errors.New("a summarize helper needs a patch helper")
	}
	o := HelperOptions{Clock: time.Now}
	for _, option := range options {
		option(&o)
	}
	for _, processor := range o.Processors {
		processor(ctx, h.recorder, conditions.ObjectOf(obj), o.ReconcileResult, o.ReconcileError)
	}
	verdict, patchOptions := h.settle(obj, o)

	deleting := !obj.GetDeletionTimestamp().IsZero()
	err := h.patcher.Patch(ctx, obj, patchOptions...)
	switch {
	case err == nil:
		if o.TransitionEvents {
			h.recordTransition(obj)
		}
	case o.IgnoreNotFound && deleting && apierrors.IsNotFound(err):
	case errors.Is(err, patch.ErrConflict):
		logf.FromContext(ctx).V(1).Info("the object changed during the pass; coming again", "conflict", err.Error())
		if verdict.Err == nil {
			return ctrl.Result{RequeueAfter: result.RequeueDelay}, nil
		}
	default:
		// The controller ignores the result next to an error.
		return ctrl.Result{}, errors.Join(verdict.Err, fmt.Errorf("write the outcome: %w", err))
	}
	return verdict.Result, verdict.Err
}
