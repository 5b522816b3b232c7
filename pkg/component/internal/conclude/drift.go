// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conclude

import (
	"regexp"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/telemetry"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/conditions"
)

// NoteDrift brings condition Drifted in line with the objects that differ from
// their manifests and are left as they are. It returns the notes about them, if
// they are new.
func NoteDrift(obj identity.Component, drifted []report.Deviation) []report.Note {
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
