// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// Status is the part of a component's status that belongs to Corbel. Embed it
// inline into the status of your own type.
//
// The custom resource definition must have the status subresource, and should
// default status.observedGeneration to -1, because tools mistake an empty status for
// a good one:
//
//	// +kubebuilder:default={"observedGeneration":-1}
//	Status ShopStatus `json:"status,omitempty"`
//
// These columns of kubectl get, copied to the type, tell a user most of it:
//
//	// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
//	// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
//	// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.revision`
//	// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
//	// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
//
// +kubebuilder:object:generate=true
type Status struct {
	// ObservedGeneration is the generation of the component that the rest of the
	// status was computed for. It is set by pkg/patch when the status is written.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// AppliedGeneration is the latest generation of the component for which all
	// dependent objects were applied and ready; while the component is rolled back, those of
	// the earlier revision.
	// +optional
	AppliedGeneration int64 `json:"appliedGeneration,omitempty"`

	// Revision counts the changes of what the dependent objects are rendered from: the
	// generator, its parameters, the patches of the component, and what references hold.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// InstalledRevision is the first revision for which all dependent objects were applied
	// and ready or, as long as there is none, the latest. It is rendered as the
	// installation, and so are those before it.
	// +optional
	InstalledRevision int64 `json:"installedRevision,omitempty"`

	// Source is what the revision is rendered from; it is empty if the generator does not
	// report it.
	// +optional
	Source *v1alpha1.Source `json:"source,omitempty"`

	// History are the last revisions, the newest first, and the last one that was ready. How
	// many there are is an option of the reconciler.
	// +optional
	// +listType=atomic
	History []v1alpha1.RevisionStatus `json:"history,omitempty"`

	// Rollback is set while an earlier revision is applied because a later one failed.
	// +optional
	Rollback *v1alpha1.Rollback `json:"rollback,omitempty"`

	// AdoptedRelease is the Helm release that the component has taken over, or is taking over as long
	// as appliedGeneration is not set.
	// +optional
	AdoptedRelease *v1alpha1.AdoptedRelease `json:"adoptedRelease,omitempty"`

	// Approval is set while the next revision waits for its approval.
	// +optional
	Approval *v1alpha1.PendingApproval `json:"approval,omitempty"`

	// Reconciler is the name of the reconciler that writes this status: the prefix of the labels and
	// annotations of the dependent objects.
	// +optional
	Reconciler string `json:"reconciler,omitempty"`

	// OwnerID is the value of the label owner-id, after the name of the reconciler and a
	// slash, of the dependent objects.
	// +optional
	OwnerID string `json:"ownerID,omitempty"`

	// State is the component's condition in one word.
	// +optional
	State v1alpha1.State `json:"state,omitempty"`

	// Progress says how many of the dependent objects are done, such as "12/17": applied and
	// ready or, in deletion, gone.
	// +optional
	Progress string `json:"progress,omitempty"`

	// Conditions are Ready and, while they apply, Reconciling or Stalled.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// LastAppliedAt is when dependent objects were last written and became ready.
	// +optional
	LastAppliedAt *metav1.Time `json:"lastAppliedAt,omitempty"`

	// ProcessingSince is when the current attempt to become ready started: with
	// the last change of the component or of its manifests. The timeout counts
	// from here. It is empty while the component is ready, is suspended or lacks a right;
	// once the right is granted, the timeout goes on.
	// +optional
	ProcessingSince *metav1.Time `json:"processingSince,omitempty"`

	// ProcessingDigest identifies the state of the component and of its
	// manifests that is, or was last, processed: the digests of the component, of the
	// manifests and of the revision, a generation, and the digest of the generator, separated by slashes.
	// +optional
	ProcessingDigest string `json:"processingDigest,omitempty"`

	// LastHandledReconcileAt is the value of the annotation reconcile-at, or
	// reconcile.fluxcd.io/requestedAt, that the last full reconcile found.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`

	// Inventory is the record of the dependent objects.
	// +optional
	Inventory v1alpha1.Inventory `json:"inventory,omitzero"`
}

// IsReady reports whether the component is ready. The status may be about an older
// generation of the component: compare ObservedGeneration.
func (s *Status) IsReady() bool {
	return s != nil && s.State == v1alpha1.StateReady
}

// GetState returns the state, and the reason and the message of condition Ready.
// All are empty before the first reconcile of the component.
func (s *Status) GetState() (state v1alpha1.State, reason, message string) {
	if s == nil {
		return "", "", ""
	}
	if ready := apimeta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady); ready != nil {
		reason, message = ready.Reason, ready.Message
	}
	return s.State, reason, message
}

// progress returns the form of Status.Progress.
func progress(done, total int) string {
	return fmt.Sprintf("%d/%d", done, total)
}

// digestSeparator separates the parts of the processing digest.
const digestSeparator = "/"

// processing is what the processing digest holds. The digest of the manifests is empty
// until they are rendered.
type processing struct {
	component, manifests, revision string
	// generation is the generation of the component that the revision was last counted
	// for, as text. It does not depend on the digest key, and neither does the generator.
	generation string
	// generator is "=" and the digest of the generator in component and revision; empty in a status of an earlier build.
	generator string
}

func (s *Status) processing() processing {
	parts := append(strings.SplitN(s.ProcessingDigest, digestSeparator, 5), "", "", "", "")
	return processing{component: parts[0], manifests: parts[1], revision: parts[2], generation: parts[3], generator: parts[4]}
}

func (s *Status) setProcessing(p processing) {
	s.ProcessingDigest = strings.Join([]string{p.component, p.manifests, p.revision, p.generation, p.generator}, digestSeparator)
}

// startProcessing records the digests of the component before anything is rendered, and
// counts the revision. Another component restarts the timeout; then the answer is true.
//
// A revision that is missing although a digest is recorded was dropped by an outdated
// CustomResourceDefinition. It is sent again, so that the reconcile notices if that is still
// so. If something was applied, it counts as an upgrade: a hook may run again, but none
// is left out.
func (s *Status) startProcessing(generation int64, now digests, at time.Time) bool {
	before := s.processing()
	changed := before.component != now.component
	switch {
	case s.Revision == 0 && s.AppliedGeneration != 0:
		s.Revision = max(s.InstalledRevision, 1) + 1
	case s.Revision == 0 && s.AdoptedRelease != nil:
		s.Revision = max(s.AdoptedRelease.Revision, 1)
	case s.Revision == 0 || before.revision != now.revision:
		s.Revision++
	}
	if s.AppliedGeneration == 0 {
		s.InstalledRevision = s.Revision
	}
	after := processing{component: now.component, manifests: before.manifests, revision: now.revision, generation: strconv.FormatInt(generation, 10), generator: now.from}
	if changed {
		after.manifests = ""
		s.ProcessingSince = timeoutStart(at)
	}
	if after != before {
		s.setProcessing(after)
	}
	return changed
}

// noteManifests notes the digest of what was rendered. Another one than before
// restarts the timeout.
func (s *Status) noteManifests(manifestDigest string, now time.Time) {
	p := s.processing()
	before := p.manifests
	if before == manifestDigest || manifestDigest == "" {
		return
	}
	p.manifests = manifestDigest
	s.setProcessing(p)
	if before != "" {
		s.ProcessingSince = timeoutStart(now)
	}
}

// startTimeout starts the timeout if it is not running; passed is how much of it has
// passed already. A start in the future, which a restored status may hold, would never
// time out.
func (s *Status) startTimeout(now time.Time, passed time.Duration) {
	if s.ProcessingSince == nil || s.ProcessingSince.After(now.Add(time.Second)) {
		s.ProcessingSince = timeoutStart(now.Add(-passed))
	}
}

// stopTimeout stops the timeout, and returns how much of it has passed; running is false
// if it was stopped before.
func (s *Status) stopTimeout(now time.Time) (passed time.Duration, running bool) {
	if s.ProcessingSince == nil {
		return 0, false
	}
	passed = max(now.Sub(s.ProcessingSince.Time), 0)
	s.ProcessingSince = nil
	return passed, true
}

// noteApplied ends the attempt: everything is applied and ready. While the component is rolled
// back, its generation is not applied.
func (s *Status) noteApplied(generation int64, wrote bool, now time.Time) {
	if wrote || s.Rollback == nil && s.AppliedGeneration != generation || s.LastAppliedAt == nil {
		s.LastAppliedAt = timestamp(now)
	}
	if s.Rollback == nil {
		s.AppliedGeneration = generation
	}
	s.ProcessingSince = nil
	current := s.currentRevision()
	if current == nil || current.Result == v1alpha1.RevisionReady {
		return
	}
	if current.ReadyAt == nil {
		current.ReadyAt = timestamp(now)
	}
	current.Result = v1alpha1.RevisionReady
}

// currentRevision returns the entry of the revision in the history; nil if there is none.
func (s *Status) currentRevision() *v1alpha1.RevisionStatus {
	if len(s.History) == 0 || s.History[0].Revision != s.Revision {
		return nil
	}
	return &s.History[0]
}

// isNew reports whether the revision was not ready yet.
func (s *Status) isNew() bool {
	current := s.currentRevision()
	return current != nil && current.Result != v1alpha1.RevisionReady
}

// startRevision adds the revision to the history, unless it is in it. A revision that was
// counted anew, because the status was restored or dropped, replaces what came after it.
func (s *Status) startRevision(started v1alpha1.RevisionStatus, limit int, now time.Time) {
	if s.currentRevision() != nil {
		return
	}
	earlier := slices.DeleteFunc(slices.Clone(s.History), func(r v1alpha1.RevisionStatus) bool { return r.Revision >= s.Revision })
	if len(earlier) > 0 && earlier[0].Result == v1alpha1.RevisionProcessing {
		earlier[0].Result = v1alpha1.RevisionSuperseded
	}
	started.Revision, started.Result, started.AppliedAt, started.Source = s.Revision, v1alpha1.RevisionProcessing, *timestamp(now), s.Source.DeepCopy()
	s.History = append([]v1alpha1.RevisionStatus{started}, earlier...)
	lastReady := s.lastReady()
	kept := s.History[:min(len(s.History), max(limit, 1))]
	for _, entry := range s.History[len(kept):] {
		// The one that is rolled back to has the digest of what is to be applied.
		if lastReady != nil && entry.Revision == lastReady.Revision || entry.Revision == started.RollbackTo {
			kept = append(kept, entry)
		}
	}
	s.History = kept
}

// lastReady returns the last revision before the current one that was ready; nil if there is none.
func (s *Status) lastReady() *v1alpha1.RevisionStatus {
	for i, entry := range s.History {
		if entry.Revision < s.Revision && entry.Result == v1alpha1.RevisionReady {
			return &s.History[i]
		}
	}
	return nil
}

// revisionInHistory returns the entry of a revision; nil if there is none.
func (s *Status) revisionInHistory(revision int64) *v1alpha1.RevisionStatus {
	if i := slices.IndexFunc(s.History, func(entry v1alpha1.RevisionStatus) bool { return entry.Revision == revision }); i >= 0 {
		return &s.History[i]
	}
	return nil
}

// noteFailed notes in the history that the revision failed.
func (s *Status) noteFailed() {
	if current := s.currentRevision(); current != nil && current.Result == v1alpha1.RevisionProcessing {
		current.Result = v1alpha1.RevisionFailed
	}
}

// installs reports whether the revision is rendered as an installation: it was the first
// that was applied, or none was. One that takes over a Helm release is what the release was.
func (s *Status) installs() bool {
	if s.AdoptedRelease != nil {
		return s.takesOver() && s.AdoptedRelease.Revision <= 1
	}
	return s.AppliedGeneration == 0 || s.Revision <= max(s.InstalledRevision, 1)
}

// takesOver reports whether the revision is the one with which a Helm release is taken over, so that its hooks have run.
func (s *Status) takesOver() bool {
	return s.AdoptedRelease != nil && s.Revision <= max(s.AdoptedRelease.Revision, 1)
}

// timedOut reports whether the current attempt exceeds the timeout.
func (s *Status) timedOut(timeout time.Duration, now time.Time) bool {
	return s.ProcessingSince != nil && now.Sub(s.ProcessingSince.Time) >= timeout
}

// timeoutStart is the next full second, so that no timeout ends early.
func timeoutStart(t time.Time) *metav1.Time { return timestamp(t.Add(time.Second - 1)) }

// timestamp has no fraction of a second, because its serialised form has none: a
// status that was just read must not differ from the one that was written.
func timestamp(t time.Time) *metav1.Time {
	return new(metav1.NewTime(t.UTC().Truncate(time.Second)))
}
