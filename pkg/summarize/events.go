// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package summarize

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/conditions"
)

// actionReconcile is what the events say was being done.
const actionReconcile = "Reconcile"

// deletionGoesOn are the reasons for which an object under deletion is not ready although
// nothing has failed.
var deletionGoesOn = []string{v1alpha1.ReasonDeletionProcessing, v1alpha1.ReasonDeletionBlocked}

// recordTransition makes an event if Ready is another one than when the object
// was read. A message that merely counts on is no event. The first success after a
// failure says what it recovered from.
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
	h.recorder.Eventf(conditions.ObjectOf(obj), nil, eventType, ready.Reason, actionReconcile, "%s", boundedNote(note))
}
