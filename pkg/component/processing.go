// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// digestSeparator separates the parts of the processing digest.
const digestSeparator = "/"

// processing is what the processing digest holds. The digest of the manifests is empty
// until they are rendered. Versions that counted a revision with each change of the
// component recorded no digest of the revision.
type processing struct{ component, manifests, revision string }

func (s *Status) processing() processing {
	parts := append(strings.SplitN(s.ProcessingDigest, digestSeparator, 3), "", "")
	return processing{component: parts[0], manifests: parts[1], revision: parts[2]}
}

func (s *Status) setProcessing(p processing) {
	s.ProcessingDigest = strings.Join([]string{p.component, p.manifests, p.revision}, digestSeparator)
}

// beginProcessing notes the digests of the component before anything is rendered, and
// counts the revision. Another component restarts the timeout; then the answer is true.
//
// A revision that is missing although a digest is recorded was dropped by an outdated
// CustomResourceDefinition. It is sent again, so that the pass notices if that is still
// so. If something was applied, it counts as an upgrade: a hook may run again, but none
// is left out.
func (s *Status) beginProcessing(now digests, at time.Time) bool {
	before := s.processing()
	changed := before.component != now.component
	switch {
	case s.Revision == 0 && s.AppliedGeneration != 0:
		s.Revision = max(s.InstalledRevision, 1) + 1
	case s.Revision == 0 || before.revision != now.revision && (before.revision != "" || changed):
		s.Revision++
	}
	if s.AppliedGeneration == 0 {
		s.InstalledRevision = s.Revision
	}
	after := processing{component: now.component, manifests: before.manifests, revision: now.revision}
	if changed {
		after.manifests = ""
		s.ProcessingSince = timestamp(at)
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
		s.ProcessingSince = timestamp(now)
	}
}

// noteWaiting starts the timeout if it is not running. A start in the future,
// which a restored status may hold, would never time out.
func (s *Status) noteWaiting(now time.Time) {
	if s.ProcessingSince == nil || s.ProcessingSince.After(now) {
		s.ProcessingSince = timestamp(now)
	}
}

// stopWaiting stops the timeout, which begins anew with the next wait: the dependents had
// no chance to become ready while the component was suspended or lacked a right.
func (s *Status) stopWaiting() { s.ProcessingSince = nil }

// noteApplied ends the attempt: everything is applied and ready.
func (s *Status) noteApplied(generation int64, wrote bool, now time.Time) {
	if wrote || s.AppliedGeneration != generation || s.LastAppliedAt == nil {
		s.LastAppliedAt = timestamp(now)
	}
	s.AppliedGeneration = generation
	s.ProcessingSince = nil
}

// installs reports whether the revision is rendered as an installation: it was the first
// that was applied, or none was. Versions that recorded no such revision took the first.
func (s *Status) installs() bool {
	return s.AppliedGeneration == 0 || s.Revision <= max(s.InstalledRevision, 1)
}

// timedOut tells whether the current attempt has taken too long.
func (s *Status) timedOut(timeout time.Duration, now time.Time) bool {
	return s.ProcessingSince != nil && now.Sub(s.ProcessingSince.Time) >= timeout
}

// timestamp has no fraction of a second, because its serialised form has none: a
// status that was just read must not differ from the one that was written.
func timestamp(t time.Time) *metav1.Time {
	return new(metav1.NewTime(t.UTC().Truncate(time.Second)))
}
