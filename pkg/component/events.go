// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/events"
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

// tally is what was done for a component since it was last told.
type tally struct {
	steps map[string]int
	notes []reconciler.Note
}

// tallies collects over the passes what events tell at the next transition:
// an install of many waves is one story, not one event per wave.
type tallies struct {
	mu    sync.Mutex
	byKey map[client.ObjectKey]tally
}

func newTallies() *tallies { return &tallies{byKey: map[client.ObjectKey]tally{}} }

func (t *tallies) add(key client.ObjectKey, outcome reconciler.Outcome) {
	if len(outcome.Steps) == 0 && len(outcome.Notes) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.byKey[key]
	if known.steps == nil {
		known.steps = map[string]int{}
	}
	for verb, n := range outcome.Steps {
		known.steps[verb] += n
	}
	for _, note := range outcome.Notes {
		// The same note comes again while what it is about lasts.
		if len(known.notes) < maxKeptNotes && !slices.Contains(known.notes, note) {
			known.notes = append(known.notes, note)
		}
	}
	t.byKey[key] = known
}

func (t *tallies) take(key client.ObjectKey) tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.byKey[key]
	delete(t.byKey, key)
	return known
}

// send makes events of a tally.
func (h *handler[T]) send(obj T, what doing, told tally) {
	notes := make([]events.Event, 0, len(told.notes))
	for _, note := range told.notes {
		eventType := corev1.EventTypeNormal
		if note.Warning != "" {
			eventType = corev1.EventTypeWarning
		}
		notes = append(notes, events.Event{
			Type: eventType, Reason: cmp.Or(note.Warning, reasonNoted), Action: string(what), Note: note.Key.String() + ": " + oneLine(note.Message),
			Related: &corev1.ObjectReference{Kind: note.Key.Kind, Namespace: note.Key.Namespace, Name: note.Key.Name},
		})
	}
	// Harm comes first: not all may fit.
	slices.SortStableFunc(notes, func(a, b events.Event) int { return cmp.Compare(b.Type, a.Type) })
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
	{"create", "created"}, {"replace", "replaced"}, {"merge", "merged"}, {"override", "overrode"},
	{"delete", "deleted"}, {"orphan", "released"},
}

// summaryOf is one line such as "created 57 objects, deleted 1 object"; empty if
// nothing was done.
func summaryOf(steps map[string]int) string {
	rest := maps.Clone(steps)
	var parts []string
	for _, verb := range participles {
		if n := rest[verb[0]]; n > 0 {
			parts = append(parts, verb[1]+" "+objectsText(n))
		}
		delete(rest, verb[0])
	}
	for _, verb := range slices.Sorted(maps.Keys(rest)) {
		parts = append(parts, fmt.Sprintf("%s: %s", verb, objectsText(rest[verb])))
	}
	return strings.Join(parts, ", ")
}
