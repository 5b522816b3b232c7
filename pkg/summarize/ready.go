// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package summarize

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/result"
)

// messages are for Ready where no error says anything.
var messages = map[result.Outcome]string{
	result.Succeeded: "everything is as it should be",
	result.Ignored:   "nothing to do",
	result.Requeued:  "work goes on",
}

// settleReady makes Ready agree with the verdict. Conditions that were
// summarised are believed if they say something worse; they may be left over from
// an earlier pass, so a Ready that is True after a failure is not believed.
func settleReady(obj conditions.Setter, now time.Time, verdict result.Verdict, summarized bool) {
	switch verdict.Outcome {
	case result.Succeeded, result.Ignored:
		if !summarized {
			conditions.MarkTrue(obj, now, v1alpha1.ConditionReady, v1alpha1.ReasonReady, "%s", messages[verdict.Outcome])
		}
	case result.Failed, result.Stalled:
		if !summarized || !conditions.IsFalse(obj, v1alpha1.ConditionReady) {
			conditions.MarkFalse(obj, now, v1alpha1.ConditionReady, verdict.Reason, "%s", verdict.Message)
		}
	case result.Waited, result.Requeued:
		if !summarized || conditions.IsTrue(obj, v1alpha1.ConditionReady) {
			message := verdict.Message
			if message == "" {
				message = messages[verdict.Outcome]
			}
			conditions.MarkUnknown(obj, now, v1alpha1.ConditionReady, verdict.Reason, "%s", message)
		}
	}
	explainUnknown(obj, now)
}

// explainUnknown adds Reconciling where Ready is Unknown: by convention somebody
// must be at work then, else the object would count as current.
func explainUnknown(obj conditions.Setter, now time.Time) {
	ready := conditions.Get(obj, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionUnknown || ready.Reason == v1alpha1.ReasonSuspended {
		return
	}
	if !conditions.IsReconciling(obj) && !conditions.IsStalled(obj) {
		conditions.MarkReconciling(obj, now, ready.Reason, "%s", ready.Message)
	}
}
