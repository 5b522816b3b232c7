// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"regexp"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// reasonDrifted is the reason of condition Drifted, and of the event about it.
const reasonDrifted = "Drifted"

// noteDrift brings condition Drifted in line with the objects that differ from
// their manifests and are left as they are. It returns the notes about them, if
// they are news.
func (h *handler[T]) noteDrift(obj T, drifted []reconciler.Deviation, now time.Time) []reconciler.Note {
	setter := conditionsOf(obj)
	if len(drifted) == 0 {
		conditions.Delete(setter, v1alpha1.ConditionDrifted)
		return nil
	}
	var said string
	if before := apimeta.FindStatusCondition(obj.GetStatus().Conditions, v1alpha1.ConditionDrifted); before != nil {
		said = before.Message
	}
	message := driftMessage(drifted)
	if sameBut(atTime, said, message) {
		message = said // one who writes every second must not make us write every second
	}
	conditions.Set(setter, now, metav1.Condition{
		Type: v1alpha1.ConditionDrifted, Status: metav1.ConditionTrue, Reason: reasonDrifted, Message: message,
	})
	if message == said {
		return nil
	}
	notes := make([]reconciler.Note, 0, len(drifted))
	for _, d := range drifted {
		notes = append(notes, reconciler.Note{Key: d.Key, Message: "drifted: " + d.Drift.String()})
	}
	return notes
}

// driftMessage names the first few drifted objects, and says who changed what, and when.
func driftMessage(drifted []reconciler.Deviation) string {
	var sentences []string
	for _, d := range drifted[:min(len(drifted), verdict.MaxNamed)] {
		sentences = append(sentences, verdict.Shorten(d.Key.String()+": "+verdict.OneLine(d.Drift.String()), verdict.MaxSentence))
	}
	return verdict.JoinSentences(sentences, len(drifted))
}

// atTime is when somebody changed something.
var atTime = regexp.MustCompile(` at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// sameBut reports whether two texts differ only in what the expression matches.
func sameBut(passing *regexp.Regexp, a, b string) bool {
	return passing.ReplaceAllString(a, "") == passing.ReplaceAllString(b, "")
}
