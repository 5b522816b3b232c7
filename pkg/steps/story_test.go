// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/steps"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/wire"
)

// story is the life of one bucket: it is there and comes to rest, then it is deleted and goes.
type story struct {
	*testing.T
	server client.WithWatch
	cloud  *cloud
	// commits makes the locks of the operators write with the commit of a patch helper.
	commits bool
	// meddled holds what another client changed, which must stay.
	meddled *Bucket
}

func newStory(t *testing.T) *story {
	return &story{T: t, server: newServer(stored()).Direct, cloud: newCloud()}
}

// bucket returns the object, or nil if it is gone.
func (s *story) bucket() *Bucket {
	s.Helper()
	b := &Bucket{}
	err := s.server.Get(s.Context(), key, b)
	if client.IgnoreNotFound(err) != nil {
		s.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return b
}

func (s *story) delete() {
	s.Helper()
	check.NoError(s, s.server.Delete(s.Context(), s.bucket()))
}

// live lets the operators run all steps, one after the other: the next one starts
// after the crash of the last one.
func (s *story) live(longest time.Duration, operators ...*operator) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Hour)
	defer cancel()
	current := 0
	drive := func() {
		s.Helper()
		for {
			check.NoError(s, operators[current].drive(ctx, longest))
			if !operators[current].gate.HasCrashed() || current == len(operators)-1 {
				return
			}
			current++
		}
	}
	drive()
	if s.bucket() != nil { // it was not deleted before
		s.checkCompleted()
		s.delete()
		drive()
	}
	if b := s.bucket(); b != nil {
		s.Errorf("the object is still there: %+v", b.Status)
	}
	if len(s.cloud.buckets) != 0 || len(s.cloud.byKey) != 1 {
		s.Errorf("made %d, left over %v", len(s.cloud.byKey), s.cloud.buckets)
	}
}

func (s *story) checkCompleted() {
	s.Helper()
	b := s.bucket()
	if b == nil {
		s.Fatal("the object is gone")
	}
	c := b.Status.Steps.FindType(step)
	if c == nil || c.Status != steps.ConditionCompleted || c.Lock != nil {
		s.Fatalf("the step is %+v", c)
	}
	if m := s.meddled; m != nil {
		theirs := m.Status.Steps.TypeHasStatus("Theirs", "Mine")
		if b.Labels["theirs"] != m.Labels["theirs"] || b.Spec != m.Spec || b.Status.Phase != m.Status.Phase || b.Status.Steps.TypeHasStatus("Theirs", "Mine") != theirs {
			s.Errorf("the change of another client is lost: %+v became %+v", m, b)
		}
	}
	if len(s.cloud.byKey) != 1 || len(s.cloud.buckets) != 1 || !s.cloud.buckets[b.Status.BucketName] {
		s.Errorf("made %d, there are %v, the status says %q", len(s.cloud.byKey), s.cloud.buckets, b.Status.BucketName)
	}
}

// checkCalls expects one call of each kind, and one more of the kind that a crash has repeated.
func (s *story) checkCalls(repeated string) {
	s.Helper()
	for _, call := range []string{"create", "configure", "remove"} {
		want := 1
		if call == repeated {
			want = 2
		}
		if got := s.cloud.calls[call]; got != want {
			s.Errorf("%s was called %d times, want %d", call, got, want)
		}
	}
}

// requestsOfALife returns the requests of an operator to which nothing happens.
func requestsOfALife(t *testing.T, commits bool) []string {
	t.Helper()
	s, g := newStory(t), &wire.Gate{}
	s.commits = commits
	s.live(0, s.operator(g))
	s.checkCalls("")
	return g.Requests()
}
