// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/conditions"
)

// Member returns the state of a component in the roll-out of a generator, by its status alone. Skipped: the component is not
// reconciled.
func (f *Fleet) Member(obj identity.Component, generator string, skipped bool) (m Member) {
	status := revision.Of(obj)
	m.said = conditions.Has(identity.Conditions(obj), v1alpha1.ConditionRolloutStopped)
	m.Canary = f.Limits.Canaries.Matches(labels.Set(obj.GetLabels()))
	asked, _ := f.Annotation(obj)
	a := status.RenderedBy(generator)
	pinned := asked == pin || f.Self.Value(obj, vocabulary.AnnotationRollbackTo) != ""
	madeWith := ""
	if of := status.Processing().Generator; of != "" {
		madeWith = revision.GeneratorID(of[1:])
	}
	neverApplied := status.Current() == nil || status.AppliedGeneration == 0
	switch {
	case a.Ready != nil:
		m.State = Done
		if a.Before != nil {
			m.ReadyAt = a.Ready.ReadyAt.Add(time.Second) // which has lost its fraction, and no pause ends early
		}
	case skipped:
		m.State = Pinned
	case a.Last == nil && neverApplied:
		m.State = Done // it is installed with the version, at once
	case a.Last == nil && pinned:
		m.State = Pinned
	case a.Last == nil && madeWith == generator:
		m.State = Done // the version that it leaves renders the same
	case a.Last == nil:
		m.State = Waiting
	case a.Before == nil, madeWith != "" && madeWith != generator: // the version renders the same
		m.State = Done
	case a.Last.Revision == status.Revision && a.Last.Result == v1alpha1.RevisionProcessing && !f.isStuck(obj):
		m.State = Updating
	case asked == ignore || a.Before.Result != v1alpha1.RevisionReady:
		m.State = Done
	default:
		m.State, m.Why = Failed, failureOf(obj)
	}
	return m
}

// isStuck reports whether a revision that is applied does not become ready by itself.
func (f *Fleet) isStuck(obj identity.Component) bool {
	timedOut := revision.Of(obj).TimedOut(f.Timeout(obj), f.Now())
	_, reason, _ := obj.GetStatus().GetState() // Processing after the timeout: see Facts.Settling
	return conditions.IsTrue(identity.Conditions(obj), v1alpha1.ConditionStalled) || timedOut && reason != vocabulary.ReasonProcessing
}

// isSkipped reports whether a component that was listed is not reconciled.
func (f *Fleet) isSkipped(obj identity.Component) bool {
	policy := f.ManagementPolicy
	if own := f.Self.Value(obj, v1alpha1.AnnotationManagementPolicy); own != "" {
		policy = v1alpha1.ManagementPolicy(own)
	}
	return strings.EqualFold(string(policy), string(v1alpha1.ManagementPolicySkip)) || f.IsSuspended(obj)
}

// failureOf says why a component failed, and which field manager wrote that into its status: a forged status can stop a roll-out.
func failureOf(obj identity.Component) string {
	status := obj.GetStatus()
	_, _, message := status.GetState()
	text := sentence.Shorten(message, verdict.MaxSentence)
	if status.Rollback != nil {
		text = status.Rollback.Message
	}
	var last metav1.ManagedFieldsEntry
	for _, entry := range obj.GetManagedFields() {
		if entry.Subresource == "status" && (last.Manager == "" || last.Time.Before(entry.Time)) {
			last = entry
		}
	}
	if last.Manager != "" {
		text += fmt.Sprintf(" (status written by %s)", last.Manager)
	}
	return text
}
