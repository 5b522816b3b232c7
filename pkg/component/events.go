// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/corbel-run/corbel/internal/events"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

const (
	// maxNotes is how many notes become events at a transition. With the
	// transition itself and the summary that makes five.
	maxNotes = 3
	// maxKeptNotes bounds what is kept for a component without transitions.
	maxKeptNotes = 100
)

// doing is what events say was being done.
type doing string

const (
	applying doing = "Apply"
	deleting doing = "Delete"
)

// reasons of the events that are no transitions.
const (
	reasonNoted   = "DependentNoted"
	reasonApplied = "Applied"
	reasonDeleted = "Deleted"
)

// noteReasons are the reasons of events about notes that are no warnings, by the
// beginnings of their messages.
var noteReasons = map[string]string{
	"adopted":        "Adopted",
	"released":       "Released",
	"recreated":      "Recreated",
	"marks put back": "MarksPutBack",
	"drifted":        reasonDrifted,
	"drift repaired": "DriftRepaired",
	"left alone":     "LeftAlone",

	"counts as complete": "AssumedComplete",
}

// tally is what was done for a component since it was last told. It is collected over the
// reconciles: an install of many waves is one story, not one event per wave.
type tally struct {
	steps map[string]int
	notes []reconciler.Note
	// more counts, by reason, the notes beyond those that are kept.
	more map[string]int
}

func (t *tally) add(outcome reconciler.Outcome) {
	for verb, n := range outcome.Steps {
		if t.steps == nil {
			t.steps = map[string]int{}
		}
		t.steps[verb] += n
	}
	for _, note := range outcome.Notes {
		// The same note comes again while what it is about lasts.
		if slices.Contains(t.notes, note) {
			continue
		}
		if len(t.notes) < maxKeptNotes {
			t.notes = append(t.notes, note)
			continue
		}
		if t.more == nil {
			t.more = map[string]int{}
		}
		t.more[noteReason(note)]++
	}
}

// noteReason is the reason of the event about a note: its message begins with what happened.
func noteReason(note reconciler.Note) string {
	if note.Warning != "" {
		return note.Warning
	}
	happened, _, _ := strings.Cut(note.Message, ":")
	return cmp.Or(noteReasons[happened], reasonNoted)
}

// notesByReason makes one event of all notes with one reason. It names the first few
// objects and counts the others. Harm comes first: not all may fit.
func notesByReason(told tally, what doing) []events.Event {
	var reasons []string
	byReason := map[string][]reconciler.Note{}
	for _, note := range told.notes {
		reason := noteReason(note)
		if len(byReason[reason]) == 0 {
			reasons = append(reasons, reason)
		}
		byReason[reason] = append(byReason[reason], note)
	}
	slices.SortStableFunc(reasons, func(a, b string) int {
		return cmp.Compare(byReason[b][0].Warning, byReason[a][0].Warning)
	})
	var about []events.Event
	for _, reason := range reasons {
		notes := byReason[reason]
		event := events.Event{Reason: reason, Action: string(what)}
		if notes[0].Warning != "" {
			event.Type = corev1.EventTypeWarning
		}
		var sentences []string
		for _, note := range notes[:min(len(notes), verdict.MaxNamed)] {
			sentences = append(sentences, verdict.Shorten(note.Key.String()+": "+verdict.OneLine(note.Message), verdict.MaxSentence))
		}
		event.Note = verdict.JoinSentences(sentences, len(notes)+told.more[reason])
		if key := notes[0].Key; len(notes) == 1 {
			event.Related = &corev1.ObjectReference{Kind: key.Kind, Namespace: key.Namespace, Name: key.Name}
		}
		about = append(about, event)
	}
	return about
}

// send makes events of a tally.
func (h *handler[T]) send(obj T, what doing, told tally) {
	notes := notesByReason(told, what)
	events.Send(h.recorder, obj, maxNotes, notes...)
	if summary := summaryOf(told.steps); summary != "" {
		reason := reasonApplied
		if what == deleting {
			reason = reasonDeleted
		}
		events.Send(h.recorder, obj, 1, events.Event{Reason: reason, Action: string(what), Note: summary})
	}
}

// participles are the verbs of plans in the past, in the order in which they are told.
var participles = [][2]string{
	{"create", "created"}, {"replace", "replaced"}, {"merge", "merged"}, {"override", "overrode"}, {"mark", "marked"},
	{"delete", "deleted"}, {"orphan", "released"},
}

// summaryOf is one line such as "created 57 objects, deleted 1 object"; empty if
// nothing was done.
func summaryOf(steps map[string]int) string {
	rest := maps.Clone(steps)
	var parts []string
	for _, verb := range participles {
		if n := rest[verb[0]]; n > 0 {
			parts = append(parts, verb[1]+" "+verdict.ObjectCount(n))
		}
		delete(rest, verb[0])
	}
	for _, verb := range slices.Sorted(maps.Keys(rest)) {
		parts = append(parts, fmt.Sprintf("%s: %s", verb, verdict.ObjectCount(rest[verb])))
	}
	return strings.Join(parts, ", ")
}
