// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corbel-run/corbel/test/check"
)

// notebook is a recorder that keeps the events that it gets.
type notebook struct{ lines []string }

func (n *notebook) Eventf(_, related runtime.Object, eventType, reason, action, note string, args ...any) {
	line := strings.Join([]string{eventType, reason, action, fmt.Sprintf(note, args...)}, "|")
	if related != nil {
		line += "|" + related.(*corev1.ObjectReference).Name
	}
	n.lines = append(n.lines, line)
}

func TestSend(t *testing.T) {
	adopted := func(name string) Event {
		return Event{Reason: "Adopted", Note: "adopted " + name + " at 100%", Related: &corev1.ObjectReference{Name: name}}
	}
	for _, test := range []struct {
		name   string
		limit  int
		events []Event
		want   []string
	}{
		{name: "no events", limit: 3},
		{
			name: "with a limit of 0 no event is sent", limit: 0, events: []Event{adopted("a")},
		},
		{
			name: "sends in order, keeps the note as it is and keeps the related object", limit: 3,
			events: []Event{adopted("a"), {Type: corev1.EventTypeWarning, Reason: "Lost", Action: "Apply", Note: "b"}},
			want:   []string{"Normal|Adopted|Adopted|adopted a at 100%|a", "Warning|Lost|Apply|b"},
		},
		{
			name: "credentials are removed", limit: 1,
			events: []Event{{Type: corev1.EventTypeWarning, Reason: "Failed", Action: "Apply", Note: `cannot read "https://jane:hunter2@host/"`}},
			want:   []string{`Warning|Failed|Apply|cannot read "https://***@host/"`},
		},
		{
			name: "exactly the limit is sent in full", limit: 2, events: []Event{adopted("a"), adopted("b")},
			want: []string{"Normal|Adopted|Adopted|adopted a at 100%|a", "Normal|Adopted|Adopted|adopted b at 100%|b"},
		},
		{
			name: "counts what does not fit", limit: 2, events: []Event{adopted("a"), adopted("b"), adopted("c"), adopted("d")},
			want: []string{"Normal|Adopted|Adopted|adopted a at 100%|a", "Normal|Adopted|Adopted|adopted b at 100% (and 2 more)|b"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var recorded notebook
			Send(Bounded(&recorded), &corev1.ConfigMap{}, test.limit, test.events...)
			check.EqualNamed(t, "events", test.want, recorded.lines)
		})
	}
}

func TestBoundedCutsAtTheLimitsOfTheServer(t *testing.T) {
	var recorded notebook
	recorder := Bounded(&recorded)
	recorder.Eventf(nil, nil, corev1.EventTypeNormal, strings.Repeat("R", 200), strings.Repeat("A", 200), "%s", strings.Repeat("ä", 1000))
	parts := strings.Split(recorded.lines[0], "|")
	if len(parts[1]) != maxReason || len(parts[2]) != maxAction {
		t.Errorf("reason has %d bytes, action %d", len(parts[1]), len(parts[2]))
	}
	if note := parts[3]; len(note) != maxNote || !utf8.ValidString(note) {
		t.Errorf("note has %d bytes, valid: %v", len(note), utf8.ValidString(note))
	}
}

func TestFoldedNoteKeepsTheCount(t *testing.T) {
	var recorded notebook
	long := Event{Reason: "Adopted", Note: strings.Repeat("x", 2000)}
	Send(Bounded(&recorded), nil, 1, long, long)
	if !strings.HasSuffix(recorded.lines[0], " (and 1 more)") {
		t.Errorf("the count is missing: ...%s", recorded.lines[0][len(recorded.lines[0])-20:])
	}
}

func TestControllerNameLeavesRoomForTheHost(t *testing.T) {
	for _, test := range []struct {
		name, controller, host, want string
	}{
		{"short names stay", "shop.example.com", "node-1", "shop.example.com"},
		{"long names are cut", strings.Repeat("a", 200), strings.Repeat("h", 63), strings.Repeat("a", 64)},
		{"a cut name does not end in a dot", strings.Repeat("a", 63) + ".example.com", strings.Repeat("h", 63), strings.Repeat("a", 63)},
	} {
		t.Run(test.name, func(t *testing.T) {
			check.Same(t, test.want, controllerName(test.controller, test.host))
		})
	}
}
