// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/slice"
)

// confirmation is how long after its last look at the component an operator may create
// objects; a pause that is longer must not lead to an object that is in no inventory.
const confirmation = 5 * time.Second

// succession is a scenario in which an operator stands still in the middle of its
// work, and another one meanwhile does the next piece of work to its end.
type succession struct {
	name string
	// first are the manifests that are installed before, desired those that the
	// first operator works on; nil means that the component does not exist, or is deleted.
	first, desired []string
	// then is what the second operator is asked for.
	then []string
	// anew makes the component a new one of the same name before the last change.
	anew bool
}

var successions = []succession{
	{name: "install, then change", desired: lifeOne, then: lifeTwo},
	{name: "install, then delete", desired: lifeOne},
	{name: "upgrade, then change back", first: lifeOne, desired: lifeTwo, then: lifeOne},
	{name: "upgrade, then delete", first: lifeOne, desired: lifeTwo},
	{name: "delete, then create anew", first: lifeOne, then: lifeTwo, anew: true},
	{name: "install a type, then delete", desired: machine},
	{
		name:  "recreate, then change again",
		first: []string{configMap("a", "1", "update-policy", "recreate")}, desired: []string{configMap("a", "2", "update-policy", "recreate")},
		then: []string{configMap("a", "3", "update-policy", "recreate")},
	},
}

// TestTwoLeaders lets an operator stand still before every request of its work,
// for longer than it may create objects without a look, while another operator
// is elected and does what is asked for next. When the first one continues, it must
// not leave an object behind that is in no inventory, nor a component that makes no progress. It
// does so once with watches that are correct and once for each of the faults that
// hide from it what the other has done.
func TestTwoLeaders(t *testing.T) {
	t.Parallel()
	for number, s := range successions {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			started := time.Now()
			var total int
			t.Run("without a stop", func(t *testing.T) { total = s.play(t, newBarrier(0), nil) })
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
					s.play(t, b, fault)
					if b.isDown() {
						met.Add(1)
					}
				})
			}
			t.Run("stop", func(t *testing.T) {
				faults := hidingFaults()
				for at := 1; at <= total; at++ {
					if !cases.Has(at + 3*number) { // not the same ones of all scenarios
						continue
					}
					stop(t, at, nil)
					for i, fault := range faults {
						if cases.Picks(at, i, len(faults)) {
							stop(t, at, fault)
						}
					}
				}
			})
			t.Logf("%d points, %d of them run, %d stopped, %s", total, ran, met.Load(), time.Since(started).Round(time.Second))
		})
	}
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
	cast := newCast(t, f, f.objects(t, slices.Concat(s.first, s.desired, s.then)))
	f.mayBeIdle = true
	watches := newFaultyWatches(fault, f.version(t))
	one := f.startWith(t, bundleManifests, watches.around(b.wrap))
	if s.first != nil {
		f.ask(t, s.first)
		f.settled(t, s.first)
	}
	watches.start(t, f.version(t))
	b.arm()
	f.ask(t, s.desired)
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

	two := f.startWith(t, bundleManifests, nil)
	defer two.stop(t)
	if s.anew {
		f.settled(t, nil)
	}
	f.ask(t, s.then)
	f.settled(t, s.then)
	if b.isDown() {
		time.Sleep(max(0, confirmation+500*time.Millisecond-b.stoppedFor()))
	}
	close(b.resume)
	b.await(t)
	watches.end()
	watches.awaitEnd(t)
	one.stop(t)
	if s.then != nil {
		if err := two.reconciler.Trigger(f.namespace, "main"); err != nil {
			t.Fatal(err)
		}
	}
	s.check(t, f, cast, b)
	return total
}

// ask creates, changes or deletes the component.
func (f *fixture) ask(t testing.TB, content []string) {
	t.Helper()
	bundle := f.named("main")
	err := f.Get(t.Context(), client.ObjectKeyFromObject(bundle), bundle)
	switch {
	case client.IgnoreNotFound(err) != nil:
		t.Fatal(err)
	case content == nil && err == nil:
		err = client.IgnoreNotFound(f.Delete(t.Context(), bundle))
	case content == nil:
		err = nil
	case err == nil:
		f.update(t, bundle, f.values(content))
	default:
		bundle = f.named("main")
		bundle.Spec.Values = f.values(content)
		err = f.Create(t.Context(), bundle)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) settled(t testing.TB, content []string) {
	t.Helper()
	eventually(t, "what is asked for", func(ctx context.Context) error { return f.isSettled(ctx, content) })
}

// isSettled returns an error as long as the component is not what was asked for.
func (f *fixture) isSettled(ctx context.Context, content []string) error {
	s := &scenario{desired: map[string][]string{"main": content}}
	if content == nil {
		s = &scenario{installed: map[string][]string{"main": nil}}
	}
	return s.finished(ctx, f)
}

// check expects exactly the objects that were asked for last, all of them on record.
// Only a creation that was on its way while the operator stood still may have
// come too late for all operators.
func (s succession) check(t *testing.T, f *fixture, cast *cast, b *barrier) {
	t.Helper()
	want := []string{}
	for _, object := range f.objects(t, s.then) {
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
		if diff := cmp.Diff(want, append([]string{}, names(owned)...)); diff != "" {
			return errors.New("objects with our label and annotation (-want +got):\n" + diff)
		}
		if diff := cmp.Diff(recorded, owned); diff != "" {
			return errors.New("what is recorded and what is there (-recorded +there):\n" + diff)
		}
		return nil
	})
	for name := range f.late {
		t.Logf("the creation of %s was on its way and came too late", name)
	}
	story := &scenario{desired: map[string][]string{"main": s.then}}
	story.awaitContent(t, f) // what the first wrote last may not have come through the watch of the second
}
