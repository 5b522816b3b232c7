// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// digestSeparator separates the parts of the processing digest.
const digestSeparator = "/"

// processing is what the processing digest holds. The digest of the manifests is empty
// until they are rendered. Versions that counted a revision with each change of the
// component recorded no digest of the revision.
type processing struct {
	component, manifests, revision string
	// generation is the generation of the component that the revision was last counted
	// for, as text. It is the only part that does not depend on the digest key.
	generation string
}

func (s *Status) processing() processing {
	parts := append(strings.SplitN(s.ProcessingDigest, digestSeparator, 4), "", "", "")
	return processing{component: parts[0], manifests: parts[1], revision: parts[2], generation: parts[3]}
}

func (s *Status) setProcessing(p processing) {
	s.ProcessingDigest = strings.Join([]string{p.component, p.manifests, p.revision, p.generation}, digestSeparator)
}

// beginProcessing notes the digests of the component before anything is rendered, and
// counts the revision. Another component restarts the timeout; then the answer is true.
//
// A revision that is missing although a digest is recorded was dropped by an outdated
// CustomResourceDefinition. It is sent again, so that the pass notices if that is still
// so. If something was applied, it counts as an upgrade: a hook may run again, but none
// is left out.
func (s *Status) beginProcessing(generation int64, now digests, at time.Time) bool {
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
	after := processing{component: now.component, manifests: before.manifests, revision: now.revision, generation: strconv.FormatInt(generation, 10)}
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

// startTimeout starts the timeout if it is not running; passed is how much of it has
// passed already. A start in the future, which a restored status may hold, would never
// time out.
func (s *Status) startTimeout(now time.Time, passed time.Duration) {
	if s.ProcessingSince == nil || s.ProcessingSince.After(now) {
		s.ProcessingSince = timestamp(now.Add(-passed))
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

// timedOut reports whether the current attempt has taken too long.
func (s *Status) timedOut(timeout time.Duration, now time.Time) bool {
	return s.ProcessingSince != nil && now.Sub(s.ProcessingSince.Time) >= timeout
}

// timestamp has no fraction of a second, because its serialised form has none: a
// status that was just read must not differ from the one that was written.
func timestamp(t time.Time) *metav1.Time {
	return new(metav1.NewTime(t.UTC().Truncate(time.Second)))
}
