// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The processing digest has two parts, because they are known at different times:
// the component's digest before rendering, the manifests' digest after it.
const digestSeparator = "/"

// beginProcessing notes the digest of the component before anything is rendered.
// Another one than before is a new revision, and restarts the timeout; then the
// answer is true.
func (s *Status) beginProcessing(componentDigest string, now time.Time) bool {
	before, _, _ := strings.Cut(s.ProcessingDigest, digestSeparator)
	if before == componentDigest {
		return false
	}
	s.ProcessingDigest = componentDigest + digestSeparator
	s.Revision++
	s.ProcessingSince = timestamp(now)
	return true
}

// noteManifests notes the digest of what was rendered. Another one than before
// restarts the timeout.
func (s *Status) noteManifests(manifestDigest string, now time.Time) {
	component, before, _ := strings.Cut(s.ProcessingDigest, digestSeparator)
	if before == manifestDigest || manifestDigest == "" {
		return
	}
	s.ProcessingDigest = component + digestSeparator + manifestDigest
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

// noteApplied ends the attempt: everything is applied and ready.
func (s *Status) noteApplied(generation int64, wrote bool, now time.Time) {
	if wrote || s.AppliedGeneration != generation || s.LastAppliedAt == nil {
		s.LastAppliedAt = timestamp(now)
	}
	s.AppliedGeneration = generation
	s.ProcessingSince = nil
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
