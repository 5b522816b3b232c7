// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/telemetry"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
)

// report writes the verdict about the reconcile into the status, the events and the log. The panic of a
// method of the component decides the verdict, whatever else happened.
func (h *handler) report(ctx context.Context, obj Component, outcome session.Outcome) result.Verdict {
	var before telemetry.Summary
	before.State, before.Reason, _ = obj.GetStatus().GetState()
	var v verdict.Verdict
	err := guard.CallNamed("a method of the component", func() error {
		v = verdict.Evaluate(h.factsOf(obj, outcome))
		h.setVerdict(obj, v)
		h.noteTurn(ctx, obj, outcome.Phase == session.PhaseSkip)
		return nil
	})
	if err != nil {
		if _, known := errors.AsType[*types.PanicError](outcome.Err); known {
			err = outcome.Err
		}
		v = verdict.Evaluate(verdict.Facts{Deleting: !obj.GetDeletionTimestamp().IsZero(), Intervals: defaultIntervals, Err: err})
		h.setVerdict(obj, v)
	}
	h.telemetry.Report(ctx, h.subject(obj), &h.remembered(obj).activity, before, v, h.records.Count(obj))
	return v.Result()
}

// factsOf collects what the verdict depends on.
func (h *handler) factsOf(obj Component, outcome session.Outcome) verdict.Facts {
	var f verdict.Facts
	unfinished, isUnfinished := errors.AsType[*verdict.UnfinishedError](outcome.Err)
	if isUnfinished {
		f = unfinished.Facts
	}
	f.Said, f.Deleting = said(obj.GetStatus()), !obj.GetDeletionTimestamp().IsZero()
	f.Intervals, f.Random = h.intervals(obj), backoff.Random
	switch {
	case isUnfinished && f.Err != nil:
		f.Err = outcome.Err // which may say more than its cause, such as that the definition is outdated
	case isUnfinished:
	case outcome.Err != nil:
		f.Err = outcome.Err
	case outcome.Phase == session.PhaseSkip:
		f.Skipped, f.SkippedFor = h.skipOf(obj, outcome, f.RegularRequeue())
	case outcome.Phase == session.PhaseClaim && outcome.Result != result.Success:
		f.Claimed = true
	case f.Deleting:
		f.Done = "nothing is left"
	default:
		done, total, _ := strings.Cut(obj.GetStatus().Progress, "/")
		f.Done = fmt.Sprintf("%s of %s dependent objects are ready", done, total)
		for _, notice := range h.remembered(obj).rendering.Notices() {
			f.Done += "; " + notice
		}
		if pinned := h.remembered(obj).pin; pinned != "" {
			f.Done += "; " + pinned
		}
		if turn := h.remembered(obj).turn; turn != "" {
			f.Done += "; " + turn
		}
	}
	known := h.remembered(obj)
	if f.Err != nil && verdict.IsForbidden(f.Err) {
		if access, err := accessOf(obj, h.settings); err == nil {
			f.Err = targets.ExplainImpersonation(access, f.Err)
		}
		// The dependents have no chance to become ready, so the timeout goes on afterwards.
		if passed, running := revision.Of(obj).StopTimeout(h.now()); running {
			known.timeoutPassed = passed
		}
		if f.Fallback == 0 {
			f.Fallback = known.idle.Idle()
		}
	}
	if f.Waiting != "" && !f.Deleting {
		revision.Of(obj).StartTimeout(h.now(), known.timeoutPassed)
		known.timeoutPassed = 0
		f.TimedOut = revision.Of(obj).TimedOut(f.Intervals.Timeout+f.Settling, h.now())
	}
	if !f.Deleting {
		h.factsOfRollback(obj, &f, h.now())
	}
	return f
}

// factsOfRollback starts a rollback if the facts say that the revision failed, and adds to them that
// the component is rolled back.
func (h *handler) factsOfRollback(obj Component, f *verdict.Facts, now time.Time) {
	status, planned := revision.Of(obj), h.remembered(obj).planned
	if rollback := status.Rollback; rollback != nil {
		why := fmt.Sprintf("revision %d failed: %s", rollback.From, rollback.Message)
		if f.TimedOut || f.Failed {
			status.NoteFailed()
		}
		switch {
		case f.Waiting != "":
			f.Waiting += fmt.Sprintf("; rolls back to revision %d, because %s", rollback.To, why)
		case f.Done != "":
			f.RolledBack, f.Done = why+"; "+h.remembered(obj).pin, ""
			if turn := h.remembered(obj).turn; turn != "" {
				f.RolledBack += "; " + turn
			}
		}
		return
	}
	message := f.Waiting
	switch {
	case f.Waiting != "" && (f.TimedOut || f.Failed):
	case f.Err != nil && planned && !apierrors.IsConflict(f.Err) && status.TimedOut(f.Intervals.Timeout, now):
		message = f.Err.Error()
	default:
		return
	}
	if h.rollBackFailed(obj, message) {
		f.Err, f.TimedOut, f.Fallback = nil, f.TimedOut || !f.Failed, minFallback
		f.Waiting = fmt.Sprintf("%s; rolls back to revision %d", message, status.Rollback.To)
	}
}

// skipOf returns why a reconcile did not touch the dependents, and when to look again.
func (h *handler) skipOf(obj Component, outcome session.Outcome, regular time.Duration) (message string, after time.Duration) {
	if outcome.Policy == v1alpha1.ManagementPolicySkip {
		return "the management policy of the component is skip", regular
	}
	s, _ := h.suspensionOf(obj)
	if s.ends {
		after = min(max(s.remains(h.now()), verdict.MinInterval), maxInterval)
	}
	return s.String(), after
}

func said(status *Status) string {
	_, _, message := status.GetState()
	return message
}

// setVerdict brings state and conditions in line with the verdict.
func (h *handler) setVerdict(obj Component, v verdict.Verdict) {
	obj.GetStatus().State = v.State
	conditions.Delete(conditionsOf(obj), "OperatorConflict") // an earlier version set it
	v.SetConditions(conditionsOf(obj))
}

// intervals returns the intervals of the component. The fast path does not put off the
// next full one.
func (h *handler) intervals(obj Component) verdict.Intervals {
	all := intervalsOf(obj)
	if due, known := h.memory.dueIn(client.ObjectKeyFromObject(obj), h.now()); known {
		all.Requeue = min(all.Requeue, due)
	}
	return all
}

// minFallback is the shortest delay between two reconciles that wait.
const minFallback = 50 * time.Millisecond

// fallback returns the delay after which a waiting component is requeued if nothing else
// requeues it. The delay grows as long as there is no progress, but ends when the readiness of
// an object changes by itself.
func (h *handler) fallback(known *remembered, waits []report.Wait) time.Duration {
	delay := known.idle.Idle()
	now := h.now()
	if len(waits) > 0 && !slices.ContainsFunc(waits, func(wait report.Wait) bool { return wait.Reason != report.WaitConflict }) {
		delay = defaultRequeueInterval // nothing moves before the time of the next correction
	}
	if next := verdict.NextChange(waits); !next.IsZero() {
		delay = min(delay, max(next.Sub(now), minFallback))
	}
	return delay
}

// noteDrift brings condition Drifted in line with the objects that differ from
// their manifests and are left as they are. It returns the notes about them, if
// they are new.
func (h *handler) noteDrift(obj Component, drifted []report.Deviation) []report.Note {
	setter := conditionsOf(obj)
	if len(drifted) == 0 {
		conditions.Delete(setter, v1alpha1.ConditionDrifted)
		return nil
	}
	var said string
	if before := apimeta.FindStatusCondition(obj.GetStatus().Conditions, v1alpha1.ConditionDrifted); before != nil {
		said = before.Message
	}
	// A client that writes an object every second causes no write of the status each time.
	message := verdict.Steady(said, driftMessage(drifted), writeTime)
	conditions.Set(setter, metav1.Condition{
		Type: v1alpha1.ConditionDrifted, Status: metav1.ConditionTrue, Reason: telemetry.ReasonDrifted, Message: message,
	})
	if message == said {
		return nil
	}
	notes := make([]report.Note, 0, len(drifted))
	for _, d := range drifted {
		notes = append(notes, report.Note{Key: d.Key, Reason: telemetry.ReasonDrifted, Message: "drifted: " + d.Drift.String()})
	}
	return notes
}

// driftMessage names the first few drifted objects, and says which client changed what, and
// when.
func driftMessage(drifted []report.Deviation) string {
	return verdict.FirstSentences(drifted, 0, func(d report.Deviation) string {
		return d.Key.String() + ": " + sentence.OneLine(d.Drift.String())
	})
}

// writeTime matches the time of a write.
var writeTime = regexp.MustCompile(` at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// reasonUnknownAnnotation means that the component has annotations with the prefix of the operator that have no effect, because
// Corbel does not know them, or not on a component. The note names them.
//
// Event type: Warning
// What to do: correct the names, or remove the annotations.
const reasonUnknownAnnotation = "UnknownAnnotation"

// componentAnnotations are the annotations of components, without the name of the reconciler.
var componentAnnotations = []string{
	v1alpha1.AnnotationDriftPolicy, v1alpha1.AnnotationManagementPolicy, vocabulary.AnnotationSuspend, vocabulary.AnnotationSuspendReason,
	vocabulary.AnnotationReconcileAt, vocabulary.AnnotationRollbackTo, vocabulary.AnnotationRequireApproval, vocabulary.AnnotationApprove,
	vocabulary.AnnotationRollout, vocabulary.AnnotationAdoptHelmRelease, vocabulary.AnnotationAdoptOperator, vocabulary.AnnotationPreview, vocabulary.AnnotationConfirmDeletion,
	vocabulary.AnnotationAllowEmpty, vocabulary.AnnotationSkipDeleteHooks, vocabulary.AnnotationAbandon,
}

// warnOfUnknownAnnotations sends an event about annotations with our prefix that do nothing, until others do. A component that is itself
// a dependent of the same reconciler has those of dependents, too.
func (h *handler) warnOfUnknownAnnotations(obj Component) {
	if _, dependent := obj.GetLabels()[h.self.Name+"/"+vocabulary.LabelOwnerID]; dependent {
		return
	}
	var unknown []string
	for key := range obj.GetAnnotations() {
		if name, ours := strings.CutPrefix(key, h.self.Name+"/"); ours && !slices.Contains(componentAnnotations, name) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	known, text := h.remembered(obj), strings.Join(unknown, ", ")
	if text != "" && text != known.unknownAnnotations {
		h.telemetry.Warn(obj, reasonUnknownAnnotation, telemetry.Apply, fmt.Sprintf("these annotations have no effect on a component: %s; known are %s",
			sentence.Shorten(text, conditions.MaxMessage/2), strings.Join(slices.Sorted(slices.Values(componentAnnotations)), ", ")))
	}
	known.unknownAnnotations = text
}

// maxRules is how much of a condition the missing rules get, in bytes. The log has all of them.
const maxRules = 640

// nameMissing adds to an error about missing rights which rights the user of the component
// lacks. The log has them once, until other rights are missing.
func (h *handler) nameMissing(ctx context.Context, obj Component, outcome reconciler.Outcome, err error) error {
	missing, known := outcome.Missing, h.remembered(obj)
	if !verdict.IsForbidden(err) {
		known.missing = ""
		return err
	}
	access, invalid := accessOf(obj, h.settings)
	if invalid != nil {
		return err
	}
	var absent string
	if h.local != nil {
		absent = targets.MissingServiceAccount(ctx, h.local, access)
	}
	sentences := func(limit int) string {
		rules := missing.String()
		if len(rules) > limit {
			rules = fmt.Sprintf("%d rules, all of which are in the log of the operator: %s", missing.Count(), sentence.Shorten(rules, limit))
		}
		if rules != "" {
			rules = targets.UserOf(access) + " lacks rights: " + rules
		}
		return strings.Trim(absent+"; "+rules, "; ")
	}
	all := sentences(1 << 20)
	if all == "" {
		return err
	}
	if known.missing != all {
		known.missing = all
		logf.FromContext(ctx).Info("rights are missing", "missing", all)
	}
	return verdict.Worded{Err: err, Message: errors.Join(errors.New(sentences(maxRules)), err).Error()}
}
