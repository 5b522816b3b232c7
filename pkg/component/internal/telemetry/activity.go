// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/events"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

const (
	// maxNotes is how many notes become events at a transition. With the transition itself and the summary that makes five.
	//
	// Unit: events
	// Limit: the events about dependent objects in one reconcile; the last one counts the others.
	maxNotes = 3
	// maxKeptNotes bounds the notes of a component without transitions.
	maxKeptNotes = 100
)

// Apply and Delete are actions of reconciles, as events name them: the dependents are created and updated, or deleted.
const Apply, Delete = "Apply", "Delete"

// Reasons of the events that are no transitions.
const (
	// reasonNoted means that there is a note about a dependent object.
	//
	// Event type: Normal
	// What to do: read the note.
	reasonNoted = "DependentNoted"
	// reasonApplied means that the operator wrote dependent objects. The note counts them by verb.
	//
	// Event type: Normal
	// What to do: nothing.
	reasonApplied = "Applied"
	// reasonDeleted means that the operator removed dependent objects of a component in deletion. The note counts
	// them by verb.
	//
	// Event type: Normal
	// What to do: nothing.
	reasonDeleted = "Deleted"
	// ReasonDrifted means that dependent objects differ from their manifests and stay as they are, because of the
	// drift policy Report or a webhook that changes each write.
	//
	// Conditions: Drifted True
	// Event type: Normal
	// What to do: change the object back, change the manifest, or set the annotation drift-policy to repair or
	// ignore.
	ReasonDrifted = "Drifted"
)

// Activity collects the steps and notes of one component since the last report. The zero value is ready to use.
type Activity struct {
	// steps counts, by verb, the steps since the last event, and notes are those since then.
	steps map[string]int
	notes []report.Note
	// more counts, by reason, the notes beyond maxKeptNotes.
	more map[string]int
	log  logged
}

// logged is about lines of the log: there is one for each transition.
type logged struct {
	// steps counts, by verb, the steps since the last line; repaired reports whether drift was repaired since then.
	steps    map[string]int
	repaired bool
	// started reports whether a revision was started that is not ready yet, and starts whether that is not reported yet.
	started, starts bool
	// installed reports whether the component was ready before.
	installed bool
	// transition is the last logged transition.
	transition string
	// failure is the last error that was logged.
	failure failure
}

type failure struct {
	reason, message string
	at              time.Time
}

// Add adds the steps and notes of a reconcile.
func (a *Activity) Add(outcome reconciler.Outcome) {
	a.steps = addCounts(a.steps, outcome.Steps)
	for _, note := range outcome.Notes {
		// The engine repeats a note as long as its cause lasts.
		if slices.Contains(a.notes, note) {
			continue
		}
		if len(a.notes) < maxKeptNotes {
			a.notes = append(a.notes, note)
		} else {
			a.more = addCounts(a.more, map[string]int{noteReason(note): 1})
		}
	}
}

// StartRevision records that another revision of the component is rendered.
func (a *Activity) StartRevision() { a.log.started, a.log.starts = true, true }

// SetInstalled notes whether the component was ready before the present reconcile.
func (a *Activity) SetInstalled(installed bool) { a.log.installed = installed }

func addCounts(sum, more map[string]int) map[string]int {
	if sum == nil {
		sum = map[string]int{}
	}
	for name, n := range more {
		sum[name] += n
	}
	return sum
}

// noteReason returns the reason of the event about a note.
func noteReason(note report.Note) string { return cmp.Or(note.Reason, reasonNoted) }

// ReportActivity sends events about the steps and notes since the last transition, and logs them. It reports whether there were steps.
func (t *Telemetry) ReportActivity(ctx context.Context, obj identity.Component, a *Activity, action string) bool {
	events.Send(t.Recorder, obj, maxNotes, a.noteEvents(action)...)
	summary := summaryOf(a.steps)
	if summary != "" {
		reason := reasonApplied
		if action == Delete {
			reason = reasonDeleted
		}
		events.Send(t.Recorder, obj, 1, events.Event{Reason: reason, Action: action, Note: summary})
	}
	a.log.steps = addCounts(a.log.steps, a.steps)
	a.log.repaired = a.log.repaired || slices.ContainsFunc(a.notes, func(note report.Note) bool {
		return note.Reason == report.NoteDriftRepaired
	})
	a.logNotes(ctx, t.named(obj))
	a.steps, a.notes, a.more = nil, nil, nil
	return summary != ""
}

// noteEvents makes one event of all notes with one reason. Warnings come first, because not all may fit.
func (a *Activity) noteEvents(action string) []events.Event {
	var reasons []string
	byReason := map[string][]report.Note{}
	for _, note := range a.notes {
		reason := noteReason(note)
		if len(byReason[reason]) == 0 {
			reasons = append(reasons, reason)
		}
		byReason[reason] = append(byReason[reason], note)
	}
	rank := func(reason string) string {
		if byReason[reason][0].Warning {
			return reason
		}
		return ""
	}
	slices.SortStableFunc(reasons, func(a, b string) int { return cmp.Compare(rank(b), rank(a)) })
	var about []events.Event
	for _, reason := range reasons {
		notes := byReason[reason]
		event := events.Event{Reason: reason, Action: action, Note: verdict.FirstSentences(notes, a.more[reason], func(note report.Note) string {
			return note.Key.String() + ": " + sentence.OneLine(note.Message)
		})}
		if notes[0].Warning {
			event.Type = corev1.EventTypeWarning
		}
		if key := notes[0].Key; len(notes) == 1 {
			event.Related = &corev1.ObjectReference{Kind: key.Kind, Namespace: key.Namespace, Name: key.Name}
		}
		about = append(about, event)
	}
	return about
}

// participles are the verbs of plans in the past, in the order of the summary.
var participles = [][2]string{
	{"create", "created"}, {"replace", "replaced"}, {"merge", "merged"}, {"override", "overrode"}, {"mark", "marked"},
	{"delete", "deleted"}, {"orphan", "released"},
}

// summaryOf returns one line such as "created 57 objects, deleted 1 object"; it is empty if nothing was done.
func summaryOf(steps map[string]int) string {
	var parts []string
	for _, verb := range participles {
		if n := steps[verb[0]]; n > 0 {
			parts = append(parts, verb[1]+" "+verdict.Count(n, "object"))
		}
	}
	return strings.Join(parts, ", ")
}

// completed returns the name of the transition that made the component ready; it is empty if there was none.
func (a *Activity) completed(before verdict.Verdict) string {
	switch {
	case !a.log.installed:
		return "installed"
	case a.log.started:
		return "upgraded"
	case a.log.repaired:
		return "repaired"
	case len(a.log.steps) > 0:
		return "upgraded"
	case before.State != v1alpha1.StateReady && before.Reason != vocabulary.ReasonSuspended:
		return "ready"
	}
	return ""
}

// ErrorInterval is how often a component gets a line in the log if its error has another
// message each time, as long as the reason stays the same.
//
// Limit: the time between two log lines of a component with changing errors.
const ErrorInterval = time.Minute

// LogDeleted writes the line about the deletion of the dependents of a component, once.
func (t *Telemetry) LogDeleted(ctx context.Context, obj identity.Component, a *Activity) {
	if a.log.transition != "deleted" {
		t.logTransition(ctx, obj, a, "deleted")
	}
}

// named returns the values that name a component in a line of the log.
func (t *Telemetry) named(obj identity.Component) []any {
	return []any{"component", t.Self.Title(obj), "revision", obj.GetStatus().Revision}
}

// logTransition writes the line about a transition.
func (t *Telemetry) logTransition(ctx context.Context, obj identity.Component, a *Activity, transition string) {
	about := t.named(obj)
	if progress := obj.GetStatus().Progress; progress != "" {
		about = append(about, "dependents", progress)
	}
	for _, verb := range participles {
		if n := a.log.steps[verb[0]]; n > 0 {
			about = append(about, verb[1], n)
		}
	}
	logf.FromContext(ctx).Info(transition, about...)
	a.log.steps, a.log.repaired, a.log.transition = nil, false, transition
	a.log.started = a.log.started && (transition == "suspended" || transition == "resumed") // a revision goes on after a suspension
	a.log.failure = failure{}
}

// logNotes writes one line about adopted, released and recreated objects each, with the reason of the first.
func (a *Activity) logNotes(ctx context.Context, about []any) {
	for _, reason := range []string{report.NoteAdopted, report.NoteReleased, report.NoteRecreated} {
		n, first, why := a.more[reason], "", ""
		for _, note := range a.notes {
			if note.Reason != reason {
				continue
			}
			if n++; first == "" {
				first = note.Key.String()
				_, why, _ = strings.Cut(note.Message, ": ")
			}
		}
		if n > 0 {
			logf.FromContext(ctx).Info(strings.ToLower(reason), append(slices.Clone(about), "objects", n, "first", first,
				"why", sentence.Shorten(sentence.OneLine(why), verdict.MaxSentence))...)
		}
	}
}

// logVerdict writes the line about a component that is suspended, resumed, or has
// failed, once for each transition. Its error is not logged again by the controller.
func (t *Telemetry) logVerdict(ctx context.Context, obj identity.Component, a *Activity, reasonBefore string, v verdict.Verdict) {
	suspended, wasSuspended := v.Reason == vocabulary.ReasonSuspended, reasonBefore == vocabulary.ReasonSuspended
	switch {
	case suspended && !wasSuspended:
		t.logTransition(ctx, obj, a, "suspended")
	case wasSuspended && !suspended && obj.GetDeletionTimestamp().IsZero():
		t.logTransition(ctx, obj, a, "resumed")
	}
	if !v.Failed {
		a.log.failure.reason = ""
		return
	}
	if last := &a.log.failure; last.reason != v.Reason || last.message != v.Message && t.Now().Sub(last.at) >= ErrorInterval {
		*last = failure{v.Reason, v.Message, t.Now()}
		logf.FromContext(ctx).Error(errors.New(v.Message), "failed", append(t.named(obj), "reason", v.Reason)...)
	}
	if current, ok := ctx.Value(outcomeKey{}).(*outcome); ok && v.Err != nil {
		current.logged = v.Err.Error()
	}
}
