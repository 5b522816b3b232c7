// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package summarize

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/result"
)

// RecordContextualError logs errors that are not returned to the controller and
// so would not be seen, and makes events: a warning for a stall or a failure, a
// normal one while waiting. It makes an event in every pass; where transitions
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
		recorder.Eventf(conditions.ObjectOf(obj), nil, eventType, verdict.Reason, actionReconcile, "%s", boundedNote(verdict.Message))
	}
}

// maxNote is the API server's limit for the note of an event.
const maxNote = 1024

func boundedNote(note string) string {
	if len(note) <= maxNote {
		return note
	}
	cut := maxNote
	for cut > 0 && note[cut]&0xC0 == 0x80 { // not in the middle of a character
		cut--
	}
	return note[:cut]
}
