// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
)

// TestCrash kills the operator before and after every request of an
// installation, of an upgrade and of a deletion, starts it anew, and expects
// the same end as without the crash: every object there, none left over, none
// created a second time.
func TestCrash(t *testing.T) {
	for _, story := range crashStories {
		t.Run(story.name, func(t *testing.T) {
			total := story.run(t, newGuillotine(0, false))
			ran, crashed := 0, 0
			for at := 1; at <= total; at++ {
				for i, after := range []bool{false, true} {
					if !inSlice(t, 2*at+i) {
						continue
					}
					ran++
					when := map[bool]string{false: "before", true: "after"}[after]
					t.Run(fmt.Sprintf("%s request %d", when, at), func(t *testing.T) {
						t.Cleanup(func() {
							if t.Failed() {
								t.Logf("to run it alone: go test ./test/e2e -run '%s', with CORBEL_SLICE=1/1", t.Name())
							}
						})
						g := newGuillotine(at, after)
						story.run(t, g)
						if g.isDead() {
							crashed++
						}
					})
				}
			}
			// An operator may need fewer requests than the first one did; then
			// it is done before the fatal one.
			t.Logf("%d requests, %d cases, %d of them crashed", total, ran, crashed)
			if crashed < ran/2 {
				t.Errorf("only %d of %d cases crashed", crashed, ran)
			}
		})
	}
}

type crashStory struct {
	name string
	// before is the version that is installed and ready before the crash; empty for none.
	before string
	// after is the version that is wanted then; empty means that the component is deleted.
	after string
}

var crashStories = []crashStory{
	{name: "install", after: "1"},
	{name: "upgrade", before: "1", after: "2"},
	{name: "delete", before: "1"},
}

// run goes through the story with one crash and returns the number of requests
// that could have been the last.
func (s crashStory) run(t *testing.T, g *guillotine) int {
	f := newFixture(t)
	var bundle *Bundle
	if s.before != "" {
		first := f.start(t, dozen, nil)
		bundle = f.bundle(t, map[string]string{"version": s.before})
		f.ready(t, bundle)
		first.stop(t)
	}
	before := f.marked(t, f.ownerOf())

	doomed := f.start(t, dozen, g)
	switch {
	case bundle == nil:
		bundle = f.bundle(t, map[string]string{"version": s.after})
	case s.after == "":
		if err := f.Delete(t.Context(), bundle); err != nil {
			t.Fatal(err)
		}
	default:
		f.update(t, bundle, map[string]string{"version": s.after})
	}
	crashed := g.awaitFall(t, f, bundle, s.after == "")
	doomed.stop(t)
	atCrash := f.marked(t, f.ownerOf())
	if crashed {
		f.start(t, dozen, nil)
	}
	s.check(t, f, bundle, before, atCrash)
	return g.requests()
}

// awaitFall waits until the operator is dead, or has done its work without
// reaching the fatal request.
func (g *guillotine) awaitFall(t *testing.T, f *fixture, bundle *Bundle, deleted bool) bool {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	current := &Bundle{}
	for {
		select {
		case <-g.fallen:
			return true
		case <-deadline.C:
			t.Fatalf("waited %s for the operator to die or to be done", patience)
		case <-poll.C:
		}
		err := f.Get(t.Context(), client.ObjectKeyFromObject(bundle), current)
		switch {
		case apierrors.IsNotFound(err):
			if deleted {
				return g.isDead()
			}
		case err != nil:
			t.Fatal(err)
		case !deleted && current.Status.IsReady() && current.Status.ObservedGeneration == current.Generation:
			return g.isDead()
		}
	}
}

// check compares the end of the story with what it must be.
func (s crashStory) check(t *testing.T, f *fixture, bundle *Bundle, before, atCrash map[string]types.UID) {
	t.Helper()
	if s.after == "" {
		f.gone(t, bundle)
		if left := f.marked(t, f.ownerOf()); len(left) > 0 {
			t.Errorf("objects are left over: %v", names(left))
		}
		return
	}
	f.ready(t, bundle)
	conditionstest.Check(t, conditions.For(bundle, &bundle.Status.Conditions))
	got := f.marked(t, f.ownerOf())
	if diff := cmp.Diff(dozenNames(f.namespace, s.after), names(got)); diff != "" {
		t.Errorf("objects of version %s (-want +got):\n%s", s.after, diff)
	}
	for _, earlier := range []map[string]types.UID{before, atCrash} {
		for name, uid := range earlier {
			if now, there := got[name]; there && now != uid {
				t.Errorf("%s was created a second time", name)
			}
		}
	}
	f.checkVersion(t, s.after)
	if got, want := len(bundle.Status.Inventory.Items), dozenRecorded; got != want {
		t.Errorf("the inventory has %d items, want %d", got, want)
	}
}
