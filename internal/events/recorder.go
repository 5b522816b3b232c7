// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// Recorder is the recorder of client-go.
type Recorder = events.EventRecorder

// Source is where recorders come from, such as a manager of controller-runtime.
type Source interface {
	GetEventRecorder(name string) recorder.EventRecorder
}

// The limits of the API server, in bytes.
const (
	maxNote     = 1024
	maxReason   = 128
	maxAction   = 128
	maxInstance = 128
)

// NewRecorder returns a recorder of the source. Name says who reports; it is cut
// if it is too long.
func NewRecorder(source Source, name string) Recorder {
	host, _ := os.Hostname()
	return Bounded(source.GetEventRecorder(controllerName(name, host)))
}

// controllerName leaves room for the name of the host, which the recorder appends.
func controllerName(name, host string) string {
	room := max(maxInstance-len("-")-len(host), 1)
	return strings.TrimRight(cut(name, room), ".-")
}

// Bounded returns a recorder that cuts what is too long.
func Bounded(inner Recorder) Recorder { return bounded{inner} }

type bounded struct{ inner Recorder }

// Eventf implements Recorder.
func (b bounded) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	b.inner.Eventf(regarding, related, eventType,
		cut(reason, maxReason), cut(cmp.Or(action, reason), maxAction), "%s", cut(fmt.Sprintf(note, args...), maxNote))
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
