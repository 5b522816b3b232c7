// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
)

// errorInterval is how often a component whose error has another message each time
// gets a line in the log, as long as its reason stays the same.
const errorInterval = time.Minute

// chapter is what has happened to a component since the last line: the log gets one line for
// each transition.
type chapter struct {
	steps    map[string]int
	repaired bool
	// began reports whether a revision began that is not ready yet.
	began bool
	// applied is the generation that was applied before.
	applied int64
	// became is the last transition that was logged.
	became string
	// reason, message and at are of the last error that was logged.
	reason, message string
	at              time.Time
}

// add takes over what events tell.
func (c *chapter) add(told tally) {
	for verb, n := range told.steps {
		if c.steps == nil {
			c.steps = map[string]int{}
		}
		c.steps[verb] += n
	}
	for _, note := range told.notes {
		c.repaired = c.repaired || noteReason(note) == noteReasons["drift repaired"]
	}
}

// became is the name of what has made the component ready; empty if nothing has happened.
func (h *handler[T]) became(obj T, stateBefore State, reasonBefore string) string {
	c := &h.remembered(obj).unlogged
	switch {
	case c.applied == 0:
		return "installed"
	case c.began:
		return "upgraded"
	case c.repaired:
		return "repaired"
	case len(c.steps) > 0:
		return "upgraded"
	case stateBefore != StateReady && reasonBefore != v1alpha1.ReasonSuspended:
		return "ready"
	}
	return ""
}

// logTransition writes the line about a transition, and begins a new chapter.
func (h *handler[T]) logTransition(ctx context.Context, obj T, became string) {
	c := &h.remembered(obj).unlogged
	if became == "" || became == "deleted" && c.became == became {
		return
	}
	about := []any{"component", objectName(h.kind.Kind, obj), "revision", obj.GetStatus().Revision}
	if progress := obj.GetStatus().Progress; progress != "" {
		about = append(about, "dependents", progress)
	}
	for _, verb := range participles {
		if n := c.steps[verb[0]]; n > 0 {
			about = append(about, verb[1], n)
		}
	}
	logf.FromContext(ctx).Info(became, about...)
	// A revision goes on after a suspension.
	began := c.began && (became == "suspended" || became == "resumed")
	*c = chapter{began: began, applied: c.applied, became: became}
}

// logNotes writes one line about the objects that were adopted, one about those that
// were released, and one about those that were recreated, with the reason of the first.
func (h *handler[T]) logNotes(ctx context.Context, obj T, told tally) {
	for _, happened := range []string{"adopted", "released", "recreated"} {
		n, first, why := told.more[noteReasons[happened]], "", ""
		for _, note := range told.notes {
			if noteReason(note) != noteReasons[happened] {
				continue
			}
			if n++; first == "" {
				first = note.Key.String()
				_, why, _ = strings.Cut(note.Message, ": ")
			}
		}
		if n > 0 {
			logf.FromContext(ctx).Info(happened, "component", objectName(h.kind.Kind, obj), "revision", obj.GetStatus().Revision, "objects", n, "first", first,
				"why", verdict.Shorten(verdict.OneLine(why), verdict.MaxSentence))
		}
	}
}

// logVerdict writes the line about a component that is suspended, goes on, or has
// failed, once for each transition. Its error is not logged again by the controller.
func (h *handler[T]) logVerdict(ctx context.Context, obj T, v verdict.Verdict, reasonBefore string) {
	suspended, wasSuspended := v.Reason == v1alpha1.ReasonSuspended, reasonBefore == v1alpha1.ReasonSuspended
	switch {
	case suspended && !wasSuspended:
		h.logTransition(ctx, obj, "suspended")
	case wasSuspended && !suspended && obj.GetDeletionTimestamp().IsZero():
		h.logTransition(ctx, obj, "resumed")
	}
	c := &h.remembered(obj).unlogged
	if v.State != StateError {
		c.reason = ""
		return
	}
	if c.reason != v.Reason || c.message != v.Message && h.now().Sub(c.at) >= errorInterval {
		c.reason, c.message, c.at = v.Reason, v.Message, h.now()
		logf.FromContext(ctx).Error(errors.New(v.Message), "failed", "component", objectName(h.kind.Kind, obj),
			"revision", obj.GetStatus().Revision, "reason", v.Reason)
	}
	if told, ok := ctx.Value(outcomeKey{}).(*outcome); ok && v.Err != nil {
		told.logged = v.Err.Error()
	}
}

// loggedError is an error that the log has already.
type loggedError struct{ error }

func (e *loggedError) Unwrap() error { return e.error }

// logConstructor makes the loggers of the controller as controller-runtime does, but they
// do not repeat, with a stack trace at each attempt, what the log has already.
func logConstructor[T Component](mgr ctrl.Manager) func(*reconcile.Request) logr.Logger {
	gvk, err := apiutil.GVKForObject(newComponent[T](), mgr.GetScheme())
	if err != nil {
		return nil // the setup reports it
	}
	base := mgr.GetLogger().WithValues("controller", controllerName(gvk), "controllerGroup", gvk.Group, "controllerKind", gvk.Kind)
	if inner := base.GetSink(); inner != nil {
		base = base.WithSink(&onceSink{inner})
	}
	return func(request *reconcile.Request) logr.Logger {
		if request == nil {
			return base
		}
		return base.WithValues(gvk.Kind, klog.KRef(request.Namespace, request.Name), "namespace", request.Namespace, "name", request.Name)
	}
}

// onceSink writes a loggedError as a line for debugging.
type onceSink struct{ logr.LogSink }

// Error implements logr.LogSink.
func (s *onceSink) Error(err error, msg string, keysAndValues ...any) {
	if _, logged := errors.AsType[*loggedError](err); !logged {
		s.LogSink.Error(err, msg, keysAndValues...)
		return
	}
	if s.Enabled(1) {
		s.Info(1, msg, append(keysAndValues, "error", err.Error())...)
	}
}

// WithValues implements logr.LogSink.
func (s *onceSink) WithValues(keysAndValues ...any) logr.LogSink {
	return &onceSink{s.LogSink.WithValues(keysAndValues...)}
}

// WithName implements logr.LogSink.
func (s *onceSink) WithName(name string) logr.LogSink { return &onceSink{s.LogSink.WithName(name)} }

// WithCallDepth implements logr.CallDepthLogSink.
func (s *onceSink) WithCallDepth(depth int) logr.LogSink {
	if deep, ok := s.LogSink.(logr.CallDepthLogSink); ok {
		return &onceSink{deep.WithCallDepth(depth)}
	}
	return s
}
