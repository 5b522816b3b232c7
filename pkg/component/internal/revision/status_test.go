// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

func TestARevisionIsNewUntilItWasReady(t *testing.T) {
	for results, want := range map[string]bool{"Processing Ready": true, "Failed Ready": true, "Processing Failed Ready": true, "Ready Ready": false, "": false} {
		s := Status{}
		for _, result := range slices.Backward(strings.Fields(results)) {
			s.Revision++
			s.History = append([]v1alpha1.RevisionStatus{{Revision: s.Revision, Result: v1alpha1.RevisionResult(result)}}, s.History...)
		}
		if got := s.IsNew(); got != want {
			t.Errorf("%s: %t", results, got)
		}
	}
}

func TestProcessing(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(1000+seconds, 999) }
	since := func(t *testing.T, s *Status, want *time.Time) {
		t.Helper()
		switch {
		case want == nil && s.ProcessingSince != nil:
			t.Errorf("processing since %s", s.ProcessingSince)
		case want != nil && (s.ProcessingSince == nil || s.ProcessingSince.Unix() != want.Unix()+1):
			t.Errorf("processing since %v, want the second after %s", s.ProcessingSince, want)
		}
	}
	s := &Status{}
	if !s.StartProcessing(1, Digests{Component: "c1", Revision: "r1"}, at(0)) || s.Revision != 1 {
		t.Errorf("a new component is not revision 1 but %d", s.Revision)
	}
	s.NoteManifests("m1", at(1))
	since(t, s, new(at(0)))
	if s.StartProcessing(1, Digests{Component: "c1", Revision: "r1"}, at(2)) || s.Revision != 1 {
		t.Error("the same component is a new revision")
	}
	s.NoteManifests("m2", at(3))
	since(t, s, new(at(3)))
	s.NoteManifests("m2", at(4))
	s.NoteManifests("", at(4))
	s.StartTimeout(at(5), 0)
	since(t, s, new(at(3)))
	if s.TimedOut(10*time.Second, at(13)) || !s.TimedOut(10*time.Second, at(14)) {
		t.Error("the timeout does not count from the last change, or ends early")
	}
	passed, _ := s.StopTimeout(at(8))
	s.StartTimeout(at(50), passed)
	if s.TimedOut(10*time.Second, at(55)) || !s.TimedOut(10*time.Second, at(57)) {
		t.Error("the timeout ends early after it was stopped")
	}
	s.NoteApplied(4, true, at(20))
	since(t, s, nil)
	if s.TimedOut(time.Second, at(1000)) {
		t.Error("a ready component times out")
	}
	s.NoteApplied(4, false, at(30))
	if s.LastAppliedAt.Unix() != at(20).Unix() || s.AppliedGeneration != 4 {
		t.Error("a reconcile that wrote nothing changes the status")
	}
	s.StartTimeout(at(40), 0)
	since(t, s, new(at(40)))
	if !s.StartProcessing(1, Digests{Component: "c2", Revision: "r2"}, at(50)) || s.Revision != 2 || s.ProcessingDigest != "c2//r2/1/" {
		t.Errorf("revision %d, digest %q", s.Revision, s.ProcessingDigest)
	}
	since(t, s, new(at(50)))
	s.NoteManifests("m3", at(51))
	if !s.StartProcessing(1, Digests{Component: "c3", Revision: "r2"}, at(52)) || s.Revision != 2 || s.ProcessingDigest != "c3//r2/1/" {
		t.Errorf("a change that is no new revision: revision %d, digest %q", s.Revision, s.ProcessingDigest)
	}
	since(t, s, new(at(52)))
	s.ProcessingSince = new(metav1.NewTime(at(100000)))
	s.StartTimeout(at(60), 0)
	since(t, s, new(at(60)))
	if s.ProcessingSince.Nanosecond() != 0 {
		t.Error("the time has a fraction that its serialised form has not")
	}
}

func TestARevisionThatTheDefinitionDropsIsSentAgain(t *testing.T) {
	applied := Status{AppliedGeneration: 1, InstalledRevision: 1, ProcessingDigest: "c1/m1/r1"}
	for _, test := range []struct {
		name     string
		status   Status
		now      Digests
		want     int64
		installs bool
	}{
		{"nothing was applied", Status{}, Digests{Component: "c1", Revision: "r1"}, 1, true},
		{"nothing has changed since", applied, Digests{Component: "c1", Revision: "r1"}, 2, false},
		{"the spec has changed since", applied, Digests{Component: "c2", Revision: "r2"}, 2, false},
	} {
		s := test.status
		for range 3 {
			s.Revision = 0 // the other fields are kept
			s.StartProcessing(1, test.now, time.Unix(1000, 0))
		}
		if s.Revision != test.want || s.Installs() != test.installs {
			t.Errorf("%s: revision %d, installation %v, want %d, %v", test.name, s.Revision, s.Installs(), test.want, test.installs)
		}
	}
}

func TestARevisionIsCountedWithEachChangeOfItsParameters(t *testing.T) {
	now := time.Unix(1000, 0)
	tests := []struct {
		name, recorded string
		want           int64
		wantChanged    bool
	}{
		{"the status was emptied", "", 5, true},
		{"nothing has changed", "c/m/r", 4, false},
		{"nothing was rendered yet", "c//r", 4, false},
		{"the component has changed", "before/m/r", 4, true},
		{"the parameters have changed", "before/m/before", 5, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &Status{Revision: 4, ProcessingDigest: test.recorded}
			if changed := s.StartProcessing(1, Digests{Component: "c", Revision: "r"}, now); changed != test.wantChanged || s.Revision != test.want {
				t.Errorf("revision %d, changed %v; want %d, %v", s.Revision, changed, test.want, test.wantChanged)
			}
			s.NoteManifests("m", now)
			if s.StartProcessing(1, Digests{Component: "c", Revision: "r"}, now) || s.Revision != test.want || s.ProcessingDigest != "c/m/r/1/" {
				t.Errorf("afterwards: revision %d, digest %q", s.Revision, s.ProcessingDigest)
			}
		})
	}
}

func TestTheHistoryHasTheLastRevisions(t *testing.T) {
	many := make([]int64, 25)
	for i := range many {
		many[i] = int64(i + 1)
	}
	for name, test := range map[string]struct {
		revisions []int64
		want      string
	}{
		"one":                   {[]int64{1}, "1"},
		"the same again":        {[]int64{1, 1, 1}, "1"},
		"the newest first":      {[]int64{1, 2, 4}, "4 2 1"},
		"no more than the last": {many, "25 24 23 22 21 20 19 18 17 16"},
		"counted anew":          {[]int64{1, 2, 3, 2}, "2 1"},
	} {
		status, start := &Status{}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for i, number := range test.revisions {
			status.Revision, status.Source = number, &v1alpha1.Source{Version: fmt.Sprint("v", number)}
			at := start.Add(time.Duration(i) * time.Hour)
			status.Start(v1alpha1.RevisionStatus{}, 10, at)
			status.NoteApplied(1, true, at)
		}
		var got []string
		for _, applied := range status.History {
			got = append(got, fmt.Sprint(applied.Revision))
			if applied.Source.Version != fmt.Sprint("v", applied.Revision) || applied.AppliedAt.IsZero() {
				t.Errorf("%s: %+v", name, applied)
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	status := &Status{Revision: 1}
	status.Start(v1alpha1.RevisionStatus{}, 10, time.Unix(500, 0))
	status.NoteApplied(1, true, time.Unix(1000, 0))
	status.NoteApplied(1, true, time.Unix(2000, 0))
	if at := status.History[0].ReadyAt; at.Unix() != 1000 {
		t.Errorf("the revision was applied at %s, not at the repair", at)
	}
}
