// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package summarize

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

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
