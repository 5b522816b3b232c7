// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/test/slice"
	"github.com/corbel-run/corbel/test/wire"
)

// confirmation is how long after its last look at the component an operator may create
// objects; a pause that is longer must not lead to an object that is in no inventory.
const confirmation = 5 * time.Second

// succession is a scenario in which an operator stands still in the middle of its
// work, and another one meanwhile does the next piece of work to its end.
type succession struct {
	name string
	// chart makes the manifests templates of a chart.
	chart bool
	// shares makes the definition of the type Gear one that all components share.
	shares bool
	// before are changes that are made one after the other before the first operator is in danger.
	before []change
	// desired is what the first operator works on. Without content, the component is deleted.
	desired change
	// then is what the second operator is asked for.
	then change
	// applied are the manifests at the end, if not those of then.
	applied []string
	// retained are objects that are not applied and may be there then: which revisions there
	// are depends on where the first operator stops.
	retained []string
	// anew makes the component a new one of the same name before the last change.
	anew bool
}

// to is a change of the manifests.
func to(content []string) change { return change{content: content} }

var (
	deleted = change{}

	successions = []succession{
		{name: "install, then change", desired: to(lifeOne), then: to(lifeTwo)},
		{name: "install, then delete", desired: to(lifeOne), then: deleted},
		{name: "upgrade, then change back", before: []change{to(lifeOne)}, desired: to(lifeTwo), then: to(lifeOne)},
		{name: "upgrade, then delete", before: []change{to(lifeOne)}, desired: to(lifeTwo), then: deleted},
		{name: "delete, then create anew", before: []change{to(lifeOne)}, desired: deleted, then: to(lifeTwo), anew: true},
		{name: "install a type, then delete", desired: to(machine), then: deleted},
		{name: "install a type that components share, then delete", shares: true, desired: to(machine), then: deleted},
		{
			name:    "recreate, then change again",
			before:  []change{to([]string{configMap("a", "1", "update-policy", "recreate")})},
			desired: to([]string{configMap("a", "2", "update-policy", "recreate")}),
			then:    to([]string{configMap("a", "3", "update-policy", "recreate")}),
		},
		{name: "publish outputs, then others", desired: to(withOutputs("1")), then: to(withOutputs("2"))},
		{name: "publish outputs, then delete", desired: to(withOutputs("1")), then: deleted},
		{
			name: "publish a change of another client, then the next one", before: []change{to(withOutputs("1"))},
			desired: change{content: withOutputs("1"), late: "1"}, then: change{content: withOutputs("1"), late: "2"},
		},
		{name: "withdraw secret outputs, then publish them", before: []change{to(withOutputs("1"))}, desired: to([]string{configMap("other", "1")}), then: to(withOutputs("2"))},
		{name: "delete with outputs, then publish those of a new component", before: []change{to(withOutputs("1"))}, desired: deleted, then: to(withOutputs("2")), anew: true},
		{
			name: "install a chart, then change", chart: true, desired: to(chartOne), then: to(chartTwo),
			applied: ownTwo, retained: ranOfChart,
		},
		{
			name: "upgrade, then roll back", chart: true, before: []change{to(chartOne)}, desired: to(chartTwo), then: backToOne,
			applied: ownOne, retained: append([]string{"PersistentVolumeClaim $NS/data"}, ranOfChart...),
		},
		{
			name: "roll back, then remove the annotation", chart: true, before: []change{to(chartOne), to(chartTwo)}, desired: backToOne, then: to(chartTwo),
			applied: ownTwo, retained: ranOfChart,
		},
		{
			name: "roll back, then delete", chart: true, before: []change{to(chartOne), to(chartTwo)}, desired: backToOne, then: deleted,
		},
		{
			name: "roll back because of a failure, then change", chart: true, before: []change{to(chartOne)},
			desired: change{content: failingWork, reason: vocabulary.ReasonRolledBack}, then: to(chartTwo),
			applied: ownTwo, retained: ranOfChart,
		},
		{
			name: "wait for an approval, then approve", chart: true, before: []change{to(chartOne)}, desired: unapproved, then: approved,
			applied: ownTwo, retained: ranOfChart,
		},
		{
			name: "approve, then roll back", chart: true, before: []change{to(chartOne), unapproved}, desired: approved, then: backToOne,
			applied: ownOne, retained: append([]string{"PersistentVolumeClaim $NS/data"}, ranOfChart...),
		},
	}

	backToOne = change{content: chartTwo, rollbackTo: 1}
)

// TestTwoLeaders lets an operator stand still before every request of its work,
// for longer than it may create objects without a look, while another operator
// is elected and does what is asked for next. When the first one continues, it must
// not leave an object behind that is in no inventory, nor a component that makes no progress. It
// does so once with watches that are correct, and with those of the faults that
// hide from it what the other has done.
func TestTwoLeaders(t *testing.T) {
	t.Parallel()
	for number, s := range successions {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			stopAtEachRequest(t, number, hidingFaults(), func(t *testing.T, b *barrier, fault *watchFault) int { return s.play(t, b, fault) })
		})
	}
}

// stopAtEachRequest plays without a stop, which returns the number of requests, and then with a stop before each of them: once with
// watches that are correct, and once with every third fault; the next stop meets others. A slice of the cases is run, and not the same
// ones of all numbers.
func stopAtEachRequest(t *testing.T, number int, faults []*watchFault, play func(*testing.T, *barrier, *watchFault) int) {
	t.Helper()
	started := time.Now()
	var total int
	t.Run("without a stop", func(t *testing.T) { total = play(t, newBarrier(0), nil) })
	if t.Failed() {
		return
	}
	cases, ran, met := slice.FromEnvironment(t), 0, atomic.Int64{}
	stop := func(t *testing.T, at int, fault *watchFault) {
		ran++
		name := fmt.Sprintf("before request %d", at)
		if fault != nil {
			name += ", " + fault.name
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBarrier(at)
			play(t, b, fault)
			if b.isDown() {
				met.Add(1)
			}
		})
	}
	t.Run("stop", func(t *testing.T) {
		for at := 1; at <= total; at++ {
			if !cases.Has(at + 3*number) {
				continue
			}
			stop(t, at, nil)
			for i, fault := range faults {
				if cases.Picks(at, i, len(faults)) && (!cases.Whole() || (at+i)%3 == 0) {
					stop(t, at, fault)
				}
			}
		}
	})
	t.Logf("%d points, %d of them run, %d stopped, %s", total, ran, met.Load(), time.Since(started).Round(time.Second))
}

// hidingFaults are those that keep events from an operator for as long as they last.
func hidingFaults() []*watchFault {
	return slices.DeleteFunc(slices.Clone(watchFaults), func(f *watchFault) bool { return !f.hold && !f.drop && !f.isOld() })
}

// play goes through the scenario and returns the number of requests of the first
// operator. The fault lasts for it until it is quiet again.
func (s succession) play(t *testing.T, b *barrier, fault *watchFault) int {
	t.Helper()
	f := newFixture(t)
	content := slices.Concat(s.desired.content, s.then.content)
	for _, c := range s.before {
		content = append(content, c.content...)
	}
	cast := newCast(t, f, f.objects(t, content))
	f.mayBeIdle = true
	watches, counts := newFaultyWatches(fault, f.version(t)), &jobs{}
	generator := (&scenario{chart: s.chart, shares: s.shares}).generator(t, f)
	one := f.startWith(t, generator, watches.around(func(next http.RoundTripper) http.RoundTripper { return b.wrap(counts.watch(next)) }))
	for _, c := range s.before {
		f.ask(t, s, c)
		f.settled(t, c)
	}
	watches.start(t, f.version(t))
	b.arm()
	f.ask(t, s, s.desired)
	started := time.Now()
	eventually(t, "the first operator to stop or to be done", func(ctx context.Context) error {
		if b.isDown() {
			return nil
		}
		if time.Since(started) > 3*moment {
			watches.end() // it waits for an event
		}
		return f.isSettled(ctx, s.desired)
	})
	total := b.requests()

	two := f.startWith(t, generator, counts.watch)
	defer two.stop(t)
	if s.anew {
		f.settled(t, deleted)
	}
	f.ask(t, s, s.then)
	f.settled(t, s.then)
	if b.isDown() {
		time.Sleep(max(0, confirmation+500*time.Millisecond-b.stoppedFor()))
	}
	close(b.resume)
	b.await(t)
	watches.end()
	watches.awaitEnd(t)
	one.stop(t)
	if s.then.content != nil {
		if err := two.reconciler.Trigger(f.namespace, "main"); err != nil {
			t.Fatal(err)
		}
	}
	s.check(t, f, cast, b)
	counts.check(t, nil)
	if s.chart && s.then.content != nil {
		everyRevisionCanBeAppliedAgain(t, f)
	}
	return total
}

// ask creates, changes or deletes the component.
func (f *fixture) ask(t testing.TB, s succession, c change) {
	t.Helper()
	bundle := f.named("main")
	err := f.Get(t.Context(), client.ObjectKeyFromObject(bundle), bundle)
	switch {
	case client.IgnoreNotFound(err) != nil:
		t.Fatal(err)
	case c.content == nil && err == nil:
		err = client.IgnoreNotFound(f.Delete(t.Context(), bundle))
	case c.content == nil:
		err = nil
	case err == nil && c.late != "":
		f.setLate(t, "source", c.late)
	case err == nil:
		c.do(t, f, "main")
	default:
		bundle = f.named("main")
		bundle.Spec.Values = f.values(c.content)
		bundle.Spec.RollbackOnFailure = new(s.desired.reason == vocabulary.ReasonRolledBack)
		err = f.Create(t.Context(), bundle)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) settled(t testing.TB, c change) {
	t.Helper()
	eventually(t, "what is asked for", func(ctx context.Context) error { return f.isSettled(ctx, c) })
}

// isSettled returns an error as long as the component is not what was asked for.
func (f *fixture) isSettled(ctx context.Context, c change) error {
	if c.content == nil {
		return (&scenario{installed: map[string][]string{"main": nil}}).finished(ctx, f)
	}
	s := &scenario{desired: map[string][]string{"main": c.content}, ends: map[string]string{"main": c.reason}}
	if err := s.finished(ctx, f); err != nil || c.reason != "" {
		return err
	}
	bundle := f.named("main")
	if err := f.Get(ctx, client.ObjectKeyFromObject(bundle), bundle); err != nil {
		return err
	}
	if pinnedTo(bundle) != c.rollbackTo {
		return fmt.Errorf("the history is %q, want the manifests of revision %d", historyOf(bundle), c.rollbackTo)
	}
	if got := bundle.Status.Outputs["late"]; got != c.late {
		return fmt.Errorf("the output late is %q, want %q", got, c.late)
	}
	return nil
}

// check expects exactly the objects that were asked for last, all of them on record.
// Only a creation that was on its way while the operator stood still may have
// come too late for all operators.
func (s succession) check(t *testing.T, f *fixture, cast *cast, b *barrier) {
	t.Helper()
	want, applied := []string{}, s.then.content
	if s.applied != nil {
		applied = s.applied
	}
	for _, object := range f.objects(t, applied) {
		want = append(want, nameOf(object))
	}
	slices.Sort(want)
	f.late = map[string]bool{}
	eventually(t, "the end of the story", func(ctx context.Context) error {
		if err := f.isSettled(ctx, s.then); err != nil {
			return err
		}
		owned, err := cast.owned(ctx, f)
		if err != nil {
			return err
		}
		recorded, err := f.recorded(ctx)
		if err != nil {
			return err
		}
		maps.DeleteFunc(owned, func(name string, _ types.UID) bool {
			_, known := recorded[name]
			if !known && b.isUnderWay(name) {
				f.late[name] = true
			}
			return f.late[name]
		})
		got := slices.DeleteFunc(append([]string{}, names(owned)...), func(name string) bool {
			return slices.ContainsFunc(s.retained, func(retained string) bool { return f.fill(retained) == name })
		})
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.New("objects with our label and annotation (-want +got):\n" + diff)
		}
		if diff := cmp.Diff(recorded, owned); diff != "" {
			return errors.New("what is recorded and what is there (-recorded +there):\n" + diff)
		}
		return f.checkOutputs(ctx, "main")
	})
	for name := range f.late {
		t.Logf("the creation of %s was on its way and came too late", name)
	}
	story := &scenario{desired: map[string][]string{"main": applied}}
	story.awaitContent(t, f) // what the first wrote last may not have come through the watch of the second
}

// barrier stops an operator before one of its requests until it may continue, as
// a pause of the process or of the network does.
type barrier struct {
	// at is the request, counted from 1, before which the operator stops; 0 means never.
	at int

	resume chan struct{}

	mu      sync.Mutex
	armed   bool
	stopped string // the request: method and path; empty before
	since   time.Time
	waiting map[string]bool // the objects that requests that wait write, by name
	count   int
	flying  int
	last    time.Time
}

func newBarrier(at int) *barrier {
	return &barrier{at: at, resume: make(chan struct{}), waiting: map[string]bool{}}
}

// wrap puts the barrier between the operator and the server. While it is down,
// nothing at all gets through: the operator hears of no change either.
func (b *barrier) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if isBackground(r) {
			return next.RoundTrip(r)
		}
		if b.step(r) {
			select {
			case <-b.resume:
			case <-r.Context().Done():
			}
		}
		defer b.done()
		return next.RoundTrip(r)
	})
}

// step counts a request and reports whether it has to wait.
func (b *barrier) step(r *http.Request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flying++
	b.last = time.Now()
	if !b.armed {
		return false
	}
	b.count++
	if b.count == b.at {
		b.stopped, b.since = r.Method+" "+r.URL.Path, time.Now()
	}
	if b.stopped == "" {
		return false
	}
	select {
	case <-b.resume:
		return false
	default:
	}
	// Requests that are sent at the same time wait, too: the process stands still.
	b.waiting[writtenName(bodyOf(r))] = true
	return true
}

func (b *barrier) done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flying--
	b.last = time.Now()
}

func (b *barrier) arm() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.armed = true
}

// isDown reports whether the operator has stopped.
func (b *barrier) isDown() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stopped != ""
}

// stoppedFor is how long the operator has stood still.
func (b *barrier) stoppedFor() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped == "" {
		return 0
	}
	return time.Since(b.since)
}

// await waits until the operator has gone on and is quiet.
func (b *barrier) await(t testing.TB) {
	t.Helper()
	eventually(t, "the first operator to be quiet", func(context.Context) error {
		if !b.isQuiet() {
			return errors.New("it is at work")
		}
		return nil
	})
}

// isQuiet reports whether the operator has sent nothing for a moment.
func (b *barrier) isQuiet() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.flying == 0 && time.Since(b.last) > 700*time.Millisecond
}

// isUnderWay reports whether the write of the object was on its way when the
// operator stopped: it cannot be cancelled.
func (b *barrier) isUnderWay(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting[name]
}

func (b *barrier) requests() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}
