// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
)

// Status is the status of a component, with the methods that count revisions and keep the history and the timeout.
type Status v1alpha1.ComponentStatus

// Of returns the status of a component.
func Of(obj identity.Component) *Status { return (*Status)(obj.GetStatus()) }

// Processing is the content of ProcessingDigest. The digest of the manifests is empty until they are rendered.
type Processing struct {
	Component, Manifests, Revision string
	// Generation is the generation of the component that the revision was last counted for, as text.
	Generation string
	// Generator is "=" and the digest of the generator in component and revision; empty in a status of an earlier build.
	Generator string
}

// Processing returns the content of ProcessingDigest.
func (s *Status) Processing() Processing {
	parts := append(strings.SplitN(s.ProcessingDigest, "/", 5), "", "", "", "")
	return Processing{Component: parts[0], Manifests: parts[1], Revision: parts[2], Generation: parts[3], Generator: parts[4]}
}

// SetProcessing sets ProcessingDigest.
func (s *Status) SetProcessing(p Processing) {
	s.ProcessingDigest = strings.Join([]string{p.Component, p.Manifests, p.Revision, p.Generation, p.Generator}, "/")
}

// StartProcessing records the digests of the component, and counts the revision. Another component restarts the timeout: then it is true.
//
// A revision that is missing although a digest is recorded was dropped by an outdated CustomResourceDefinition. It is sent again,
// so that the reconcile notices if that is still so. If something was applied, it counts as an upgrade: a hook may run again, but
// none is left out.
func (s *Status) StartProcessing(generation int64, now Digests, at time.Time) bool {
	before := s.Processing()
	changed := before.Component != now.Component
	switch {
	case s.Revision == 0 && s.AppliedGeneration != 0:
		s.Revision = max(s.InstalledRevision, 1) + 1
	case s.Revision == 0 && s.AdoptedRelease != nil:
		s.Revision = max(s.AdoptedRelease.Revision, 1)
	case s.Revision == 0 || before.Revision != now.Revision:
		s.Revision++
	}
	if s.AppliedGeneration == 0 {
		s.InstalledRevision = s.Revision
	}
	after := Processing{Component: now.Component, Manifests: before.Manifests, Revision: now.Revision, Generation: strconv.FormatInt(generation, 10), Generator: now.From}
	if changed {
		after.Manifests = ""
		s.ProcessingSince = timeoutStart(at)
	}
	if after != before {
		s.SetProcessing(after)
	}
	return changed
}

// Starts reports whether a revision would start with the digests.
func (s *Status) Starts(next Digests) bool {
	started := *s
	started.StartProcessing(0, next, time.Time{})
	return started.Revision != s.Revision
}

// NoteManifests notes the digest of the manifests. Another one than before restarts the timeout.
func (s *Status) NoteManifests(manifestDigest string, now time.Time) {
	p := s.Processing()
	if p.Manifests == manifestDigest || manifestDigest == "" {
		return
	}
	if p.Manifests != "" {
		s.ProcessingSince = timeoutStart(now)
	}
	p.Manifests = manifestDigest
	s.SetProcessing(p)
}

// StartTimeout starts the timeout if it is not running, or starts in the future by a restored status; passed is how much of it has passed.
func (s *Status) StartTimeout(now time.Time, passed time.Duration) {
	if s.ProcessingSince == nil || s.ProcessingSince.After(now.Add(time.Second)) {
		s.ProcessingSince = timeoutStart(now.Add(-passed))
	}
}

// StopTimeout stops the timeout, and returns how much of it has passed; running is false if it was stopped before.
func (s *Status) StopTimeout(now time.Time) (passed time.Duration, running bool) {
	if s.ProcessingSince == nil {
		return 0, false
	}
	passed = max(now.Sub(s.ProcessingSince.Time), 0)
	s.ProcessingSince = nil
	return passed, true
}

// NoteApplied ends the attempt: everything is applied and ready. While the component is rolled back, its generation is not applied.
func (s *Status) NoteApplied(generation int64, wrote bool, now time.Time) {
	if wrote || s.Rollback == nil && s.AppliedGeneration != generation || s.LastAppliedAt == nil {
		s.LastAppliedAt = timestamp(now)
	}
	if s.Rollback == nil {
		s.AppliedGeneration = generation
	}
	s.ProcessingSince = nil
	if current := s.Current(); s.IsNew() {
		current.Result, current.ReadyAt = v1alpha1.RevisionReady, cmp.Or(current.ReadyAt, timestamp(now))
	}
}

// Current returns the entry of the revision in the history; nil if there is none.
func (s *Status) Current() *v1alpha1.RevisionStatus {
	if len(s.History) > 0 && s.History[0].Revision == s.Revision {
		return &s.History[0]
	}
	return nil
}

// IsNew reports whether the revision was not ready yet.
func (s *Status) IsNew() bool {
	current := s.Current()
	return current != nil && current.Result != v1alpha1.RevisionReady
}

// Start adds the revision to the history, unless it is in it. A revision that was counted anew, because the status was restored or
// dropped, replaces the later ones.
func (s *Status) Start(started v1alpha1.RevisionStatus, limit int, now time.Time) {
	if s.Current() != nil {
		return
	}
	earlier := slices.DeleteFunc(slices.Clone(s.History), func(r v1alpha1.RevisionStatus) bool { return r.Revision >= s.Revision })
	if len(earlier) > 0 && earlier[0].Result == v1alpha1.RevisionProcessing {
		earlier[0].Result = v1alpha1.RevisionSuperseded
	}
	started.Revision, started.Result, started.AppliedAt, started.Source = s.Revision, v1alpha1.RevisionProcessing, *timestamp(now), s.Source.DeepCopy()
	s.History = append([]v1alpha1.RevisionStatus{started}, earlier...)
	lastReady := s.LastReady()
	kept := s.History[:min(len(s.History), max(limit, 1))]
	for _, entry := range s.History[len(kept):] {
		// The one that is rolled back to has the digest of what is to be applied.
		if lastReady != nil && entry.Revision == lastReady.Revision || entry.Revision == started.RollbackTo {
			kept = append(kept, entry)
		}
	}
	s.History = kept
}

// LastReady returns the last revision before the current one that was ready; nil if there is none.
func (s *Status) LastReady() *v1alpha1.RevisionStatus {
	for i, entry := range s.History {
		if entry.Revision < s.Revision && entry.Result == v1alpha1.RevisionReady {
			return &s.History[i]
		}
	}
	return nil
}

// Entry returns the entry of a revision; nil if there is none.
func (s *Status) Entry(revision int64) *v1alpha1.RevisionStatus {
	if i := slices.IndexFunc(s.History, func(entry v1alpha1.RevisionStatus) bool { return entry.Revision == revision }); i >= 0 {
		return &s.History[i]
	}
	return nil
}

// NoteFailed notes in the history that the revision failed.
func (s *Status) NoteFailed() {
	if current := s.Current(); current != nil && current.Result == v1alpha1.RevisionProcessing {
		current.Result = v1alpha1.RevisionFailed
	}
}

// RollBack notes that the component is rolled back for a reason, and reports it. A rollback, or a revision that was ready, is not.
func (s *Status) RollBack(why string) bool {
	current, last := s.Current(), s.LastReady()
	if current == nil || current.ReadyAt != nil || current.RollbackTo != 0 || last == nil || last.Digest == "" {
		return false
	}
	s.Rollback = &v1alpha1.Rollback{
		From: current.Revision, To: last.Revision, Digest: s.Processing().Revision, Message: sentence.Shorten(sentence.OneLine(why), verdict.MaxSentence),
	}
	return true
}

// Installs reports whether the revision is rendered as an installation, as the first one is, or a Helm release that it takes over was.
func (s *Status) Installs() bool {
	if s.AdoptedRelease != nil {
		return s.AdoptsRelease() && s.AdoptedRelease.Revision <= 1
	}
	return s.AppliedGeneration == 0 || s.Revision <= max(s.InstalledRevision, 1)
}

// AdoptsRelease reports whether the revision is the one with which a Helm release is taken over, so that its hooks have run.
func (s *Status) AdoptsRelease() bool {
	return s.AdoptedRelease != nil && s.Revision <= max(s.AdoptedRelease.Revision, 1)
}

// TimedOut reports whether the current attempt exceeds the timeout.
func (s *Status) TimedOut(timeout time.Duration, now time.Time) bool {
	return s.ProcessingSince != nil && now.Sub(s.ProcessingSince.Time) >= timeout
}

// timeoutStart is the next full second, so that no timeout ends early.
func timeoutStart(t time.Time) *metav1.Time { return timestamp(t.Add(time.Second - 1)) }

// timestamp has no fraction of a second, like its serialised form: a status that was just read must not differ from the written one.
func timestamp(t time.Time) *metav1.Time {
	return new(metav1.NewTime(t.UTC().Truncate(time.Second)))
}

// Attempt is what came of a generator for a component.
type Attempt struct {
	// Last is the last revision that it rendered; nil if it rendered none.
	Last *v1alpha1.RevisionStatus
	// Ready is the first of its revisions that was ready, as far as they are known; nil if none was.
	Ready *v1alpha1.RevisionStatus
	// Before is the last revision of another generator; nil if none is known.
	Before *v1alpha1.RevisionStatus
}

// RenderedBy returns what came of a generator. Rollbacks are no revisions of a generator, and change nothing of that.
func (s *Status) RenderedBy(generator string) (a Attempt) {
	for i := range s.History {
		switch entry := &s.History[i]; {
		case entry.Generator == generator && entry.RollbackTo == 0:
			if a.Last = cmp.Or(a.Last, entry); entry.ReadyAt != nil {
				a.Ready = entry
			}
		case a.Last != nil:
			a.Before = entry
			return a
		case entry.RollbackTo == 0:
			return a
		}
	}
	return a
}
