// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
)

// ErrorInterval is how often a component gets a line in the log if its error has another
// message each time, as long as the reason stays the same.
//
// Limit: the time between two log lines of a component whose error has another message each time.
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

// logTransition writes the line about a transition; an empty one is none.
func (t *Telemetry) logTransition(ctx context.Context, obj identity.Component, a *Activity, transition string) {
	if transition == "" {
		return
	}
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
	// A revision goes on after a suspension.
	a.log.started = a.log.started && (transition == "suspended" || transition == "resumed")
	a.log.failure = failure{}
}

// logNotes writes one line about adopted objects, one about released and one about recreated
// objects, with the reason of the first.
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

// loggedError is an error that the log has already.
type loggedError struct{ error }

func (e *loggedError) Unwrap() error { return e.error }

// LogConstructor makes the loggers of a controller as controller-runtime does, but they do not
// repeat a logged error with a stack trace at each attempt.
func LogConstructor(base logr.Logger, controller string, kind schema.GroupVersionKind) func(*reconcile.Request) logr.Logger {
	base = base.WithValues("controller", controller, "controllerGroup", kind.Group, "controllerKind", kind.Kind)
	if inner := base.GetSink(); inner != nil {
		base = base.WithSink(&onceSink{inner})
	}
	return func(request *reconcile.Request) logr.Logger {
		if request == nil {
			return base
		}
		return base.WithValues(kind.Kind, klog.KRef(request.Namespace, request.Name), "namespace", request.Namespace, "name", request.Name)
	}
}

// onceSink writes a loggedError as a line for debugging.
type onceSink struct{ logr.LogSink }

func (s *onceSink) Error(err error, msg string, keysAndValues ...any) {
	if _, logged := errors.AsType[*loggedError](err); !logged {
		s.LogSink.Error(err, msg, keysAndValues...)
	} else if s.Enabled(1) {
		s.Info(1, msg, append(keysAndValues, "error", err.Error())...)
	}
}

func (s *onceSink) WithValues(keysAndValues ...any) logr.LogSink {
	return &onceSink{s.LogSink.WithValues(keysAndValues...)}
}

func (s *onceSink) WithName(name string) logr.LogSink { return &onceSink{s.LogSink.WithName(name)} }

func (s *onceSink) WithCallDepth(depth int) logr.LogSink {
	if deep, ok := s.LogSink.(logr.CallDepthLogSink); ok {
		return &onceSink{deep.WithCallDepth(depth)}
	}
	return s
}
