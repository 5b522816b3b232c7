// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/corbel-run/corbel/internal/confidential"
)

// Recorder is the recorder of client-go.
type Recorder = events.EventRecorder

// Source is where recorders come from, such as a manager of controller-runtime. R is the
// type of the recorder, which differs between versions of controller-runtime.
type Source[R Recorder] interface {
	GetEventRecorder(name string) R
}

// The limits of the API server, in bytes.
const (
	// Unit: bytes
	// Limit: the note of an event; a longer one is cut.
	maxNote     = 1024
	maxReason   = 128
	maxAction   = 128
	maxInstance = 128
)

// NewRecorder returns a recorder of the source. Name is the reporting controller; it is cut
// if it is too long.
func NewRecorder[R Recorder](source Source[R], name string) Recorder {
	host, _ := os.Hostname()
	return Bounded(source.GetEventRecorder(controllerName(name, host)))
}

// controllerName leaves room for the name of the host, which the recorder appends.
func controllerName(name, host string) string {
	room := max(maxInstance-len("-")-len(host), 1)
	return strings.TrimRight(cut(name, room), ".-")
}

// Bounded returns a recorder that removes credentials, and cuts long texts.
func Bounded(inner Recorder) Recorder { return bounded{inner} }

type bounded struct{ inner Recorder }

func (b bounded) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	b.inner.Eventf(regarding, related, eventType,
		cut(reason, maxReason), cut(cmp.Or(action, reason), maxAction), "%s", cut(confidential.Filter(fmt.Sprintf(note, args...)), maxNote))
}

// cut cuts the text at a character.
func cut(text string, limit int) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	if len(text) <= limit {
		return text
	}
	for !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// Event is an event about an object.
type Event struct {
	// Type is corev1.EventTypeNormal, which is the default, or corev1.EventTypeWarning.
	Type string
	// Reason is why the event happened, in CamelCase.
	Reason string
	// Action names the action under way; the reason by default.
	Action string
	// Note is for people.
	Note string
	// Related is another object that the event is about; nil if there is none.
	Related *corev1.ObjectReference
}

// Send sends at most limit events about an object, in order. The rest is counted in the note of the
// last one. A nil recorder sends nothing.
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
