// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conclude

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/telemetry"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// reasonUnknownAnnotation means that the component has annotations of the operator that are unknown or have no
// effect on a component.
//
// Event type: Warning
// What to do: correct the names, or remove the annotations.
const reasonUnknownAnnotation = "UnknownAnnotation"

// annotations are the annotations of components, without the name of the reconciler.
var annotations = []string{
	v1alpha1.AnnotationDriftPolicy, v1alpha1.AnnotationManagementPolicy, vocabulary.AnnotationSuspend, vocabulary.AnnotationSuspendReason,
	vocabulary.AnnotationReconcileAt, vocabulary.AnnotationRollbackTo, vocabulary.AnnotationRequireApproval, vocabulary.AnnotationApprove,
	vocabulary.AnnotationRollout, vocabulary.AnnotationAdoptHelmRelease, vocabulary.AnnotationAdoptOperator, vocabulary.AnnotationPreview, vocabulary.AnnotationConfirmDeletion,
	vocabulary.AnnotationAllowEmpty, vocabulary.AnnotationSkipDeleteHooks, vocabulary.AnnotationAbandon,
}

// WarnOfUnknownAnnotations sends an event about annotations with our prefix that do nothing, once. A dependent of the same reconciler has
// annotations of dependents, too.
func (c *Concluder) WarnOfUnknownAnnotations(obj client.Object) {
	if _, dependent := obj.GetLabels()[c.Self.Name+"/"+vocabulary.LabelOwnerID]; dependent {
		return
	}
	var unknown []string
	for key := range obj.GetAnnotations() {
		if name, ours := strings.CutPrefix(key, c.Self.Name+"/"); ours && !slices.Contains(annotations, name) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	known, text := c.MemoryOf(obj), strings.Join(unknown, ", ")
	if text != "" && text != known.unknownAnnotations {
		c.Telemetry.Warn(obj, reasonUnknownAnnotation, telemetry.Apply, fmt.Sprintf("these annotations have no effect on a component: %s; known are %s",
			sentence.Shorten(text, conditions.MaxMessage/2), strings.Join(slices.Sorted(slices.Values(annotations)), ", ")))
	}
	known.unknownAnnotations = text
}

// NoteDrift brings condition Drifted in line with the objects that are left different from their manifests. It returns new notes about them.
func NoteDrift(obj identity.Component, drifted []report.Deviation) []report.Note {
	setter := identity.Conditions(obj)
	if len(drifted) == 0 {
		conditions.Delete(setter, v1alpha1.ConditionDrifted)
		return nil
	}
	var said string
	if before := conditions.Get(setter, v1alpha1.ConditionDrifted); before != nil {
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

// driftMessage names the first few drifted objects, and says which client changed which fields, and when.
func driftMessage(drifted []report.Deviation) string {
	return verdict.FirstSentences(drifted, 0, func(d report.Deviation) string {
		return d.Key.String() + ": " + sentence.OneLine(d.Drift.String())
	})
}

// writeTime matches the time of a write.
var writeTime = regexp.MustCompile(` at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// maxRules is how much of a condition the missing rules get, in bytes. The log has all of them.
const maxRules = 640

// nameMissing adds the rights that the user of the component lacks to an error about them. The log has them once, until others are missing.
func (c *Concluder) nameMissing(ctx context.Context, obj identity.Component, outcome reconciler.Outcome, err error) error {
	missing, known := outcome.Missing, c.MemoryOf(obj)
	if !verdict.IsForbidden(err) {
		known.missingRights = ""
		return err
	}
	access, invalid := c.Author.Access(obj)
	if invalid != nil {
		return err
	}
	absent := targets.MissingServiceAccount(ctx, c.Local, access)
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
	if known.missingRights != all {
		known.missingRights = all
		logf.FromContext(ctx).Info("rights are missing", "missing", all)
	}
	return verdict.MessageError{Err: err, Message: errors.Join(errors.New(sentences(maxRules)), err).Error()}
}
