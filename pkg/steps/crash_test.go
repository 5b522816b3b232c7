// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/steps"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/wire"
)

const lease = time.Minute

// TestALockIsTwoWrites pins the requests of a life: two writes for each of the three locks, and
// none at rest.
func TestALockIsTwoWrites(t *testing.T) {
	const read, write = "get", "patch status"
	want := []string{
		read, "update", read, write, "create", write, read, write, "configure", write, read,
		read, write, "remove", write, read, "update", read,
	}
	for _, commits := range []bool{false, true} {
		if diff := cmp.Diff(want, requestsOfALife(t, commits)); diff != "" {
			t.Errorf("commits %t (-want +got):\n%s", commits, diff)
		}
	}
}

// TestAfterACrashAtAnyRequestNoLockStays stops the process before and after each of its
// requests, to the API server or to the cloud. The next one is a successor with the same
// name, which does not wait; or another process, which waits for the lease and no longer. The
// bucket is made once, and nothing but the crash makes a call happen twice.
func TestAfterACrashAtAnyRequestNoLockStays(t *testing.T) {
	for _, commits := range []bool{false, true} {
		names := requestsOfALife(t, commits)
		for i, name := range names {
			for _, after := range []bool{false, true} {
				if after && name == "get" {
					continue // the same as before the next request
				}
				repeated := ""
				if after {
					repeated = name
				} else if i > 0 {
					repeated = names[i-1] // the crash comes before the record of the call
				}
				for second, longest := range map[string]time.Duration{"pod-1": 0, "pod-2": lease} {
					inBubble(t, fmt.Sprintf("commits %t, request %d %s, after %t, then %s", commits, i+1, name, after, second), func(t *testing.T) {
						s, g := newStory(t), &wire.Gate{At: i + 1, After: after}
						s.commits = commits
						s.live(longest, s.operator(g, steps.WithLease(lease), steps.WithHolder("pod-1")),
							s.operator(&wire.Gate{}, steps.WithLease(lease), steps.WithHolder(second)))
						if !g.HasCrashed() {
							t.Error("the process did not die")
						}
						s.checkCalls(repeated)
					})
				}
			}
		}
	}
}

// inBubble runs a case in which time passes when all wait.
func inBubble(t *testing.T, name string, run func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, run) })
}

// interferences are what another client does to the object between two requests.
var interferences = map[string]struct {
	change func(*Bucket)
	status bool
	step   bool // the step itself
}{
	"a label":       {func(b *Bucket) { b.Labels = map[string]string{"theirs": "x"} }, false, false},
	"the spec":      {func(b *Bucket) { b.Spec.Region = "elsewhere"; b.Generation++ }, false, false},
	"the phase":     {func(b *Bucket) { b.Status.Phase = "Theirs" }, true, false},
	"another step":  {func(b *Bucket) { _ = b.Status.Steps.SetCondition(steps.Condition{Type: "Theirs", Status: "Mine"}) }, true, false},
	"the step":      {func(b *Bucket) { b.Status.Steps.RemoveConditionWith(step) }, true, true},
	"a forged lock": {func(b *Bucket) { forge(b) }, true, true},
}

// forge makes a lock without a holder.
func forge(b *Bucket) {
	c := b.Status.Steps.FindOrInitializeFor(step)
	c.Status = steps.ConditionLocked
	_ = b.Status.Steps.SetCondition(c)
}

// TestASecondWriterAtAnyRequestStopsNothing lets another client change the object before each
// request. Both changes stay, the bucket is made once, and no work is done twice unless it
// is the step itself that was changed.
func TestASecondWriterAtAnyRequestStopsNothing(t *testing.T) {
	names := requestsOfALife(t, false)
	for i, request := range names {
		for name, interference := range interferences {
			inBubble(t, fmt.Sprintf("request %d %s, %s", i+1, request, name), func(t *testing.T) {
				s := newStory(t)
				g := &wire.Gate{At: i + 1, Happens: func() error { s.meddled = s.interfere(interference.change, interference.status); return nil }}
				s.live(lease, s.operator(g, steps.WithLease(lease)))
				if s.meddled == nil && i < len(names)-1 {
					t.Error("no client interfered")
				}
				if !interference.step {
					s.checkCalls("")
				}
			})
		}
	}
}

// interfere changes the object as another client, if it is there.
func (s *story) interfere(change func(*Bucket), status bool) *Bucket {
	b := s.bucket()
	if b == nil {
		return nil
	}
	change(b)
	var err error
	if status {
		err = s.server.Status().Update(s.Context(), b)
	} else {
		err = s.server.Update(s.Context(), b)
	}
	if err != nil {
		s.Error(err)
	}
	return b
}

// TestTwoReplicasNeverWorkOnAStepAtTheSameTime runs two of them at once, which get into each other's way.
func TestTwoReplicasNeverWorkOnAStepAtTheSameTime(t *testing.T) {
	var held, conflicts atomic.Int32
	for i := range 8 {
		inBubble(t, fmt.Sprint(i), func(t *testing.T) {
			s := newStory(t)
			both := func() {
				var group sync.WaitGroup
				for _, name := range []string{"pod-1", "pod-2"} {
					o := s.operator(&wire.Gate{Slow: true}, steps.WithLease(time.Hour), steps.WithHolder(name))
					group.Go(func() {
						for t.Context().Err() == nil {
							rest, err := o.reconcile(t.Context())
							if rest {
								return
							}
							if _, ok := errors.AsType[*steps.LockHeldError](err); ok {
								held.Add(1)
							} else if errors.Is(err, patch.ErrConflict) {
								conflicts.Add(1)
							}
						}
					})
				}
				group.Wait()
			}
			both()
			s.checkCompleted()
			s.delete()
			both()
			s.checkCalls("")
		})
	}
	if held.Load() == 0 || conflicts.Load() == 0 {
		t.Errorf("they met %d locks and %d conflicts: no overlap", held.Load(), conflicts.Load())
	}
}

// TestAHolderThatStandsStillBeyondItsLeaseHarmsNothing stops a process before each of its
// requests while another one runs all steps to the end, and then resumes it.
func TestAHolderThatStandsStillBeyondItsLeaseHarmsNothing(t *testing.T) {
	for i, name := range requestsOfALife(t, false) {
		inBubble(t, fmt.Sprintf("before request %d %s", i+1, name), func(t *testing.T) { standStill(t, i+1) })
	}
}

func standStill(t *testing.T, at int) {
	t.Helper()
	s := newStory(t)
	stopped, goOn, end := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	resume := sync.OnceFunc(func() { close(goOn) })
	defer resume() // whatever happens, or it would wait for ever
	g := &wire.Gate{At: at, Happens: func() error { close(stopped); <-goOn; return nil }}
	sleeper := s.operator(g, steps.WithLease(lease), steps.WithHolder("pod-1"))
	start := func() { go func() { end <- sleeper.drive(t.Context(), lease) }() }
	start()
	select {
	case <-stopped:
	case err := <-end: // at rest before its point, which is in the deletion
		check.NoError(t, err)
		s.delete()
		start()
		<-stopped
	}
	s.live(lease, s.operator(&wire.Gate{}, steps.WithLease(lease), steps.WithHolder("pod-2")))
	resume()
	if err := <-end; err != nil {
		t.Error(err)
	}
	if s.bucket() != nil || len(s.cloud.buckets) != 0 || len(s.cloud.byKey) != 1 {
		t.Errorf("made %d, left %v", len(s.cloud.byKey), s.cloud.buckets)
	}
}
