// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/steps"
	"github.com/corbel-run/corbel/test/slice"
	"github.com/corbel-run/corbel/test/wire"
)

const (
	shortLease = 500 * time.Millisecond
	longLease  = time.Hour
)

// TestALockIsTwoWritesAtTheServer pins the requests of a life: two for each of the three locks,
// and none at rest.
func TestALockIsTwoWritesAtTheServer(t *testing.T) {
	for commits, want := range map[bool]string{
		false: "GET PUT GET PATCH create PATCH GET PATCH configure PATCH GET GET PATCH remove PATCH GET PUT GET",
		true:  "GET PUT GET PATCH create PATCH GET PATCH configure PATCH GET GET PATCH remove PATCH GET PUT GET",
	} {
		if got := strings.Join(requestsOfALife(t, commits), " "); got != want {
			t.Errorf("commits %t: %s, want %s", commits, got, want)
		}
	}
}

// TestAfterACrashAtAnyRequestNoLockStays stops the process before and after each of its
// requests, to the API server or to the cloud. The next one is a successor with the same
// name, which does not wait; or another process, which waits for the lease and no longer. The
// bucket is made once.
func TestAfterACrashAtAnyRequestNoLockStays(t *testing.T) {
	points, ran := 0, 0
	for _, commits := range []bool{false, true} {
		names := requestsOfALife(t, commits)
		t.Run(fmt.Sprintf("commits %t", commits), func(t *testing.T) {
			for i, name := range names {
				for _, c := range []crash{{false, false, commits}, {false, true, commits}, {true, false, commits}, {true, true, commits}} {
					if c.after && name == "GET" {
						continue
					}
					points++
					if !slice.FromEnvironment(t).Has(points) {
						continue
					}
					ran++
					t.Run(fmt.Sprintf("request %d %s, after %t, by a successor %t", i+1, name, c.after, c.successor), func(t *testing.T) {
						t.Parallel()
						c.run(t, i+1)
					})
				}
			}
		})
	}
	t.Logf("%d points, %d of them run", points, ran)
}

// crash is how a process dies: after its request or before it, with a successor of the same
// name or not; and how its locks write.
type crash struct{ after, successor, commits bool }

func (c crash) run(t *testing.T, at int) {
	t.Helper()
	s, f := newStory(t), &wire.Gate{At: at, After: c.after}
	lease, longest, second := shortLease, shortLease, "pod-2"
	if c.successor {
		lease, longest, second = longLease, 0, "pod-1"
	}
	one := newOperator(t, s.cloud, f, s.key, steps.WithLease(lease), steps.WithHolder("pod-1"))
	two := newOperator(t, s.cloud, &wire.Gate{}, s.key, steps.WithLease(lease), steps.WithHolder(second))
	one.commits, two.commits = c.commits, c.commits
	s.live(longest, one, two)
	if !f.HasCrashed() {
		t.Error("the process did not die")
	}
	for call, count := range s.cloud.calls {
		if count > 2 {
			t.Errorf("%s was called %d times, one crash explains 2", call, count)
		}
	}
}

// TestWithoutIdempotencyACrashExplainsEverySecondCall is the same with a cloud that makes
// something at every call: nothing but the crash leads to a second one.
func TestWithoutIdempotencyACrashExplainsEverySecondCall(t *testing.T) {
	names := requestsOfALife(t, false)
	ran := 0
	defer func() { t.Logf("%d points run", ran) }()
	for i, name := range names {
		for _, after := range []bool{false, true} {
			if after && name == "GET" || !slice.FromEnvironment(t).Has(i) {
				continue
			}
			ran++
			t.Run(fmt.Sprintf("request %d %s, after %t", i+1, name, after), func(t *testing.T) {
				t.Parallel()
				s := newStory(t)
				s.cloud.forgetful = true
				f := &wire.Gate{At: i + 1, After: after}
				for _, o := range []*operator{
					newOperator(t, s.cloud, f, s.key, steps.WithHolder("pod-1")), newOperator(t, s.cloud, &wire.Gate{}, s.key, steps.WithHolder("pod-1")),
				} {
					if err := o.drive(t.Context(), 0); err != nil {
						t.Fatal(err)
					}
				}
				// Between the call and the record of it: after "create", before the PATCH arrives.
				between := name == "create" && after || i > 0 && names[i-1] == "create" && !after
				if want := 1 + map[bool]int{true: 1}[between]; s.cloud.made != want {
					t.Errorf("made %d, want %d", s.cloud.made, want)
				}
			})
		}
	}
}

// interferences are what another client does to the object between two requests.
var interferences = map[string]struct {
	change func(*Bucket)
	status bool
	step   bool // the step itself
}{
	"a label":       {func(b *Bucket) { b.Labels = map[string]string{"theirs": "x"} }, false, false},
	"the spec":      {func(b *Bucket) { b.Spec.Region = "elsewhere" }, false, false},
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
	points, ran := 0, 0
	t.Run("interfere", func(t *testing.T) {
		for i, request := range names {
			for name, interference := range interferences {
				points++
				if !slice.FromEnvironment(t).Has(points) {
					continue
				}
				ran++
				t.Run(fmt.Sprintf("request %d %s, %s", i+1, request, name), func(t *testing.T) {
					t.Parallel()
					s := newStory(t)
					f := &wire.Gate{At: i + 1, Happens: func() error { s.meddled = s.interfere(interference.change, interference.status); return nil }}
					s.live(shortLease, newOperator(t, s.cloud, f, s.key, steps.WithLease(shortLease)))
					if s.meddled == nil && i < len(names)-1 {
						t.Error("no client interfered")
					}
					for call, count := range s.cloud.calls {
						if count > 1 && !interference.step {
							t.Errorf("%s was called %d times: its result was not kept", call, count)
						}
					}
				})
			}
		}
	})
	t.Logf("%d points, %d of them run", points, ran)
}

// interfere changes the object as another client, and checks that the change stays.
func (s *story) interfere(change func(*Bucket), status bool) *Bucket {
	ctx := context.WithoutCancel(s.Context())
	for {
		b := s.bucket()
		if b == nil {
			return nil
		}
		change(b)
		err := error(nil)
		if status {
			err = s.client.Status().Update(ctx, b)
		} else {
			err = s.client.Update(ctx, b)
		}
		if err == nil {
			return b
		}
		if client.IgnoreNotFound(err) == nil {
			return nil
		}
	}
}

// TestTwoReplicasNeverWorkOnAStepAtTheSameTime runs two of them at once.
func TestTwoReplicasNeverWorkOnAStepAtTheSameTime(t *testing.T) {
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			both := func() {
				var group sync.WaitGroup
				for _, name := range []string{"pod-1", "pod-2"} {
					o := newOperator(t, s.cloud, &wire.Gate{}, s.key, steps.WithLease(longLease), steps.WithHolder(name))
					group.Go(func() {
						for t.Context().Err() == nil {
							if rest, _ := o.reconcile(t.Context()); rest {
								return
							}
						}
					})
				}
				group.Wait()
			}
			both()
			s.checkCompleted()
			if err := s.client.Delete(t.Context(), s.bucket()); err != nil {
				t.Fatal(err)
			}
			both()
			for call, count := range s.cloud.calls {
				if count != 1 {
					t.Errorf("%s was called %d times", call, count)
				}
			}
		})
	}
}

// TestAHolderThatStandsStillBeyondItsLeaseHarmsNothing stops a process before each of its
// requests while another one runs all steps to the end, and then resumes it.
func TestAHolderThatStandsStillBeyondItsLeaseHarmsNothing(t *testing.T) {
	names := requestsOfALife(t, false)
	ran := 0
	t.Run("stop", func(t *testing.T) {
		for i, name := range names {
			if !slice.FromEnvironment(t).Has(i) {
				continue
			}
			ran++
			t.Run(fmt.Sprintf("before request %d %s", i+1, name), func(t *testing.T) {
				t.Parallel()
				standStill(t, i+1)
			})
		}
	})
	t.Logf("%d points, %d of them run", len(names), ran)
}

func standStill(t *testing.T, at int) {
	t.Helper()
	s := newStory(t)
	stopped, resume, end := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	f := &wire.Gate{At: at, Happens: func() error { close(stopped); <-resume; return nil }}
	sleeper := newOperator(t, s.cloud, f, s.key, steps.WithLease(shortLease), steps.WithHolder("pod-1"))
	start := func() { go func() { end <- sleeper.drive(t.Context(), shortLease) }() }
	start()
	select {
	case <-stopped:
	case err := <-end: // at rest before its point, which is in the deletion
		if err != nil {
			t.Fatal(err)
		}
		if err := s.client.Delete(t.Context(), s.bucket()); err != nil {
			t.Fatal(err)
		}
		start()
		<-stopped
	}
	s.live(shortLease, newOperator(t, s.cloud, &wire.Gate{}, s.key, steps.WithLease(shortLease), steps.WithHolder("pod-2")))
	close(resume)
	if err := <-end; err != nil {
		t.Error(err)
	}
	if s.bucket() != nil || len(s.cloud.buckets) != 0 || s.cloud.made != 1 {
		t.Errorf("made %d, left %v", s.cloud.made, s.cloud.buckets)
	}
}
