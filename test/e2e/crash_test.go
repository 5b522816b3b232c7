// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/slice"
	"github.com/corbel-run/corbel/test/wire"
)

// TestCrash kills the operator at every request of every scenario: before the
// request is sent and, if it is a write, also between its commit and the answer.
// Another operator then has to bring the scenario to the same end as without a
// crash: nothing is lost, left over, done twice, and nothing of other owners is
// touched.
func TestCrash(t *testing.T) {
	t.Parallel()
	for _, s := range slices.Concat(scenarios, rolloutScenarios, outputScenarios) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			started := time.Now()
			reference := s.reference(t)
			if t.Failed() {
				return
			}
			points := pointsOf(reference.requests)
			cases, ran, crashed := slice.FromEnvironment(t), 0, atomic.Int64{}
			t.Run("die", func(t *testing.T) {
				for i, p := range points {
					if !cases.Has(i) {
						continue
					}
					ran++
					t.Run(p.String(), func(t *testing.T) {
						t.Parallel()
						t.Cleanup(func() {
							if t.Failed() {
								t.Logf("to run it alone: go test ./test/e2e -run '%s', with CORBEL_SLICE=1/1", t.Name())
							}
						})
						if end := s.play(t, newCrasher(p.at, p.after), nil, reference); end.crashed {
							crashed.Add(1)
						}
					})
				}
			})
			// An operator may need fewer requests than the first one did, because it
			// waited for a shorter time; then it is done before the fatal one.
			t.Logf("%d requests, %d points, %d of them run, %d crashed, %s",
				len(reference.requests), len(points), ran, crashed.Load(), time.Since(started).Round(time.Second))
			if crashed.Load() == 0 && ran > 1 {
				t.Errorf("none of %d cases crashed", ran)
			}
		})
	}
}

// point is where an operator crashes.
type point struct {
	at    int
	after bool
	what  string // the method, for the name of the test
}

// String is the name of the case.
func (p point) String() string {
	when := "before"
	if p.after {
		when = "after"
	}
	return fmt.Sprintf("%s request %d", when, p.at)
}

// pointsOf leaves out the points after reads: they cannot be distinguished from those
// before the next request.
func pointsOf(requests []string) []point {
	var points []point
	for i, method := range requests {
		points = append(points, point{at: i + 1, what: method})
		if method != "GET" {
			points = append(points, point{at: i + 1, after: true, what: method})
		}
	}
	return points
}

// ending is how a run of a scenario ended.
type ending struct {
	requests []string
	crashed  bool
	shot     map[string]string
}

// reference is how the scenario ends without a crash and with watches that are correct. Its
// objects, and its part of the audit log, end before the cases start.
func (s *scenario) reference(t *testing.T) (reference *ending) {
	t.Run("without a crash", func(t *testing.T) { reference = s.play(t, newCrasher(0, false), nil, nil) })
	return reference
}

// play goes through a scenario with one crash, and with watches that are at fault.
// With a reference it expects the same end.
func (s *scenario) play(t *testing.T, g *crasher, fault *watchFault, reference *ending) *ending {
	t.Helper()
	f := newFixture(t)
	cast := newCast(t, f, f.objects(t, s.texts()))
	if s.remote {
		f.openGateway(t)
	}
	if s.rollsOut {
		f.rollout = oneAtATime
		defer f.watchRollout(t)()
	}
	f.watchGateway(g.wrap)
	watches := newFaultyWatches(fault, f.version(t))
	first := f.startWith(t, s.generator(t, f), watches.around(g.wrap))
	s.prepare(t, f)
	kept := f.versions(t, slices.Concat(s.others, s.visitors))
	before := read(t, func(ctx context.Context) (map[string]types.UID, error) { return cast.owned(ctx, f) })

	if watches.endWithScenario() { // an operator that cannot list the components at its start does nothing until the end of the fault
		first.awaitSync(t, watches)
	}
	startVersion := f.version(t)
	watches.start(t, startVersion)
	requeue := func() {}
	if watches.endWithScenario() {
		requeue = func() { first.requeue(f, s.names()) }
	} else {
		watches.endLater(patience / 4)
	}
	g.arm()
	s.proceed(t, f)
	end := g.await(t, s, f, requeue)
	if !end.crashed {
		if watches.endWithScenario() {
			watches.end()
		}
		watches.awaitEnd(t)
		watches.check(t)
		end.crashed = g.HasCrashed() // by what the truth made it do
	}
	first.stop(t)
	atCrash := s.checkRecord(t, f, cast)
	f.watchGateway(g.count)
	successor := newFaultyWatches(fault, watches.before)
	defer f.startWith(t, s.generator(t, f), successor.around(g.count)).stop(t)
	if end.crashed {
		successor.start(t, startVersion)
		successor.endLater(moment)
		successor.awaitEnd(t)
	}
	s.conclude(t, f, cast, end, reference)
	for name, uid := range before {
		atCrash[name] = uid
	}
	s.check(t, f, cast, atCrash)
	if reference == nil { // a component in deletion is in the state of its end before it has come to it
		s.conclude(t, f, cast, end, nil)
	}
	s.checkContent(t, f)
	if diff := cmp.Diff(kept, f.versions(t, slices.Concat(s.others, s.visitors))); diff != "" {
		t.Errorf("objects of others (-before +after):\n%s", diff)
	}
	g.jobs.check(t, s.jobs)
	if s.after != nil {
		s.after(t, f)
	}
	return end
}

// await waits until the operator has crashed, or has done its work without reaching
// the fatal request.
func (c *crasher) await(t *testing.T, s *scenario, f *fixture, requeue func()) *ending {
	t.Helper()
	end, requeued := &ending{}, time.Now()
	eventually(t, "the operator to crash or to finish", func(ctx context.Context) error {
		end.crashed, end.requests = c.HasCrashed(), c.requests()
		if end.crashed {
			return nil
		}
		if time.Since(requeued) > moment/4 {
			requeue()
			requeued = time.Now()
		}
		err := s.finished(ctx, f)
		if err == nil && c.At > 0 && len(end.requests) >= c.At {
			err = fmt.Errorf("the operator made %d requests, and has not crashed", len(end.requests))
		}
		return err
	})
	return end
}

// requeue makes an operator reconcile components as it does when their requeue interval ends.
func (o *operator) requeue(f *fixture, names []string) {
	for _, name := range names {
		_ = o.reconciler.Trigger(f.namespace, name) // an error means that it has enough to do
	}
}

// checkRecord expects, at the moment of the crash, every object with our label to be
// on record.
func (s *scenario) checkRecord(t *testing.T, f *fixture, cast *cast) map[string]types.UID {
	t.Helper()
	owned := s.withoutRefused(f, read(t, func(ctx context.Context) (map[string]types.UID, error) { return cast.owned(ctx, f) }))
	// What was purged before and is created anew keeps its old phase until the
	// creation is answered.
	recorded := read(t, func(ctx context.Context) (map[string]types.UID, error) {
		return f.onRecord(ctx, func(item v1alpha1.InventoryItem) bool { return item.Phase != vocabulary.PhaseReleased })
	})
	for name := range owned {
		if _, ok := recorded[name]; !ok {
			t.Errorf("after the crash %s has our label and is in no inventory", name)
		}
	}
	return owned
}

// conclude waits for the end of the scenario; the reference has to be met.
func (s *scenario) conclude(t *testing.T, f *fixture, cast *cast, end, reference *ending) {
	t.Helper()
	var last string
	eventually(t, "the end of the scenario", func(ctx context.Context) (err error) {
		if err := s.finished(ctx, f); err != nil {
			return err
		}
		if end.shot, err = cast.snapshot(ctx, f, s.names()); err != nil {
			return err
		}
		if reference == nil {
			return nil
		}
		if last = cmp.Diff(reference.shot, end.shot); last != "" {
			return errors.New("it is not the end that the scenario has without a crash (-want +got):\n" + last)
		}
		return nil
	})
}

// read repeats a read until it succeeds.
func read[V any](t testing.TB, from func(ctx context.Context) (V, error)) (value V) {
	t.Helper()
	eventually(t, "an answer of the server", func(ctx context.Context) (err error) {
		value, err = from(ctx)
		return err
	})
	return value
}

// crasher counts the requests of an operator and kills it at one of them:
// from then on no request leaves and no answer arrives.
type crasher struct {
	*wire.Gate
	jobs jobs
	// armed is set when the requests start to count: what a process does to start is not part of the scenario.
	armed atomic.Bool
}

// newCrasher kills the operator at a request, counted from 1; 0 means never. With after, only the answer is lost.
func newCrasher(at int, after bool) *crasher {
	c := &crasher{}
	c.Gate = &wire.Gate{At: at, After: after, Counts: func(r *http.Request) bool { return c.armed.Load() && !isBackground(r) }}
	return c
}

// wrap puts the crasher between the operator and the server.
func (c *crasher) wrap(next http.RoundTripper) http.RoundTripper { return c.Wrap(c.count(next)) }

// count only watches the requests of an operator that does not crash.
func (c *crasher) count(next http.RoundTripper) http.RoundTripper { return c.jobs.watch(next) }

func (c *crasher) arm() { c.armed.Store(true) }

// requests are the methods of the requests that were counted.
func (c *crasher) requests() []string {
	methods := c.Requests()
	for i, request := range methods {
		methods[i], _, _ = strings.Cut(request, " ")
	}
	return methods
}

// isBackground reports whether a request is not sent by a reconcile: watches, what informers and
// watches list, events, and what a client asks about the types of the server.
func isBackground(r *http.Request) bool {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	discovery := len(parts) <= 2 || parts[0] == "apis" && len(parts) == 3 || parts[0] == "openapi"
	return discovery || isWatch(r) || isInformer(r) || isOfDependents(r) || isOfReference(r) || isEvent(r)
}

// isInformer reports whether a request is the manager's list of all Bundles, or the
// look for Secrets without a component, both of the start.
func isInformer(r *http.Request) bool {
	return r.Method == http.MethodGet && (strings.HasSuffix(r.URL.Path, "/widgets") || r.URL.Path == "/api/v1/secrets")
}

// isEvent reports whether a request is an event, which is sent in the background.
func isEvent(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/events") }

// TestAnOutageOfTheAPIServerIsOvercome kills the API server in the middle of an
// installation, of an upgrade and of a deletion, starts it again, and expects the
// same operator to come to the end without help: every object there that is
// desired, none twice, none left over.
func TestAnOutageOfTheAPIServerIsOvercome(t *testing.T) {
	t.Parallel()
	e := env.New(t, env.Options{})
	f := &fixture{Client: installBundles(t, e), env: e}
	f.target = f.Client
	f.namespace = f.newNamespace(t)
	cast := newCast(t, f, f.objects(t, append(append([]string{}, lifeOne...), lifeTwo...)))
	gate := &wire.Gate{Counts: func(r *http.Request) bool { return !isBackground(r) }}
	f.startWith(t, bundleManifests, gate.Wrap)
	for _, step := range []struct {
		name string
		want []string
	}{{"install", lifeOne}, {"upgrade", lifeTwo}, {"delete", nil}} {
		killed := make(chan error, 1)
		gate.Aim(6, false, func() error { killed <- e.KillAPIServer(); return nil })
		f.ask(t, succession{}, change{content: step.want})
		if err := <-killed; err != nil {
			t.Error(err)
		}
		if err := e.RestartAPIServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.settled(t, change{content: step.want})
		s := &scenario{desired: map[string][]string{"main": step.want}}
		for _, object := range f.objects(t, step.want) {
			s.owned = append(s.owned, nameOf(object))
		}
		if step.want == nil {
			s.desired = nil
		}
		s.check(t, f, cast, nil)
		s.checkContent(t, f)
	}
	if err := f.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "main"}, &Bundle{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the component: %v", err)
	}
}
