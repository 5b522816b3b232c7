// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package summarize

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/events"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/result"
)

// actionReconcile is the action of the events.
const actionReconcile = "Reconcile"

// deletionGoesOn are the reasons for which an object under deletion is not ready although
// nothing has failed.
var deletionGoesOn = []string{vocabulary.ReasonDeletionProcessing, vocabulary.ReasonDeletionBlocked}

// recordTransition makes an event if Ready is another one than when the object was read. A message
// that merely counts on is no event. The event of the first success after a failure names the
// failure.
func (h *Helper) recordTransition(obj conditions.Setter) {
	ready := conditions.Get(obj, v1alpha1.ConditionReady)
	if h.recorder == nil || ready == nil {
		return
	}
	before := h.patcher.OriginalCondition(v1alpha1.ConditionReady)
	if before != nil && before.Status == ready.Status && before.Reason == ready.Reason {
		return
	}
	eventType := corev1.EventTypeNormal
	if ready.Status == metav1.ConditionFalse && (obj.GetDeletionTimestamp().IsZero() || !slices.Contains(deletionGoesOn, ready.Reason)) {
		eventType = corev1.EventTypeWarning
	}
	note := ready.Message
	if before != nil && before.Status == metav1.ConditionFalse && ready.Status == metav1.ConditionTrue {
		note += " (recovered from " + before.Reason + ")"
	}
	events.Bounded(h.recorder).Eventf(conditions.ObjectOf(obj), nil, eventType, ready.Reason, actionReconcile, "%s", note)
}

// RecordContextualError logs errors that are not returned to the controller and
// so would not show, and sends events: a warning for a stall or a failure, a
// normal one while waiting. It makes an event in every reconcile; where transitions
// are enough, use WithTransitionEvents instead.
func RecordContextualError(ctx context.Context, recorder Recorder, obj client.Object, res result.Result, err error) {
	if err == nil {
		return
	}
	verdict := result.Compute(res, err, nil)
	log := logf.FromContext(ctx)
	eventType := corev1.EventTypeWarning
	switch verdict.Outcome {
	case result.Ignored:
		return
	case result.Waited:
		log.Info("reconciliation waits", "reason", verdict.Reason, "message", verdict.Message, "requeueAfter", verdict.Result.RequeueAfter)
		eventType = corev1.EventTypeNormal
	case result.Stalled:
		log.Error(err, "reconciliation stalled", "reason", verdict.Reason)
	}
	if recorder != nil {
		events.Bounded(recorder).Eventf(conditions.ObjectOf(obj), nil, eventType, verdict.Reason, actionReconcile, "%s", verdict.Message)
	}
}

// FromRecorder makes a Recorder of the older kind of recorder, such as the manager's
// GetEventRecorderFor returns. That kind has no related object and no action.
func FromRecorder(recorder record.EventRecorder) Recorder {
	if recorder == nil {
		return nil
	}
	return older{recorder}
}

type older struct{ recorder record.EventRecorder }

// Eventf implements Recorder.
func (o older) Eventf(regarding, _ runtime.Object, eventType, reason, _, note string, args ...any) {
	o.recorder.Eventf(regarding, eventType, reason, note, args...)
}
