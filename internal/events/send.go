// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Event is something worth telling about an object.
type Event struct {
	// Type is corev1.EventTypeNormal, which is the default, or corev1.EventTypeWarning.
	Type string
	// Reason is why the event happened, in CamelCase.
	Reason string
	// Action is what was being done; the reason by default.
	Action string
	// Note is for people.
	Note string
	// Related is another object that the event is about; nil if there is none.
	Related *corev1.ObjectReference
}

// Send tells about an object what fits into at most limit events, in order. What
// does not fit is counted in the note of the last one. A nil recorder tells nothing.
func Send(recorder Recorder, regarding runtime.Object, limit int, events ...Event) {
	if recorder == nil || limit <= 0 {
		return
	}
	for i, event := range events[:min(len(events), limit)] {
		note := event.Note
		if more := len(events) - limit; more > 0 && i == limit-1 {
			suffix := fmt.Sprintf(" (and %d more)", more)
			note = cut(note, maxNote-len(suffix)) + suffix
		}
		if event.Type == "" {
			event.Type = corev1.EventTypeNormal
		}
		// A nil pointer in an interface would not be nil to the recorder.
		var related runtime.Object
		if event.Related != nil {
			related = event.Related
		}
		recorder.Eventf(regarding, related, event.Type, event.Reason, event.Action, "%s", note)
	}
}
