// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/check"
)

func TestEveryKindOfChangeNotifiesTheOwnersThatItConcerns(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*server)
		want   []string
	}{
		"content":           {edit(func(o *unstructured.Unstructured) { o.Object["spec"] = "two" }), []string{"a: pod Content"}},
		"status":            {edit(func(o *unstructured.Unstructured) { o.Object["status"] = "failing" }), []string{"a: pod Status"}},
		"version":           {edit(func(*unstructured.Unstructured) {}), nil},
		"annotation":        {edit(func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{"x": "y"}) }), nil},
		"finalizer":         {edit(func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"x"}) }), []string{"a: pod Content"}},
		"deletion":          {edit(func(o *unstructured.Unstructured) { o.SetDeletionTimestamp(new(metav1.Now())) }), []string{"a: pod Content"}},
		"content and state": {edit(func(o *unstructured.Unstructured) { o.Object["spec"], o.Object["status"] = "two", "bad" }), []string{"a: pod Content"}},
		"other object":      {edit(func(o *unstructured.Unstructured) { o.SetUID("other") }), []string{"a: pod Content"}},
		"other owner":       {edit(func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{label: "b"}) }), []string{"a: pod Content", "b: pod Content"}},
		"label stripped":    {edit(func(o *unstructured.Unstructured) { o.SetLabels(nil) }), []string{"a: pod Vanished"}},
		"gone":              {func(s *server) { s.remove("shop", "pod") }, []string{"a: pod Vanished"}},
		"another of ours":   {func(s *server) { s.put(object("shop", "new", "2", "a", "x")) }, []string{"a: new Content"}},
		"not ours":          {func(s *server) { s.put(object("shop", "new", "2", "", "x")) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(b *bed) {
				b.server.put(object("shop", "pod", "1", "a", "one"))
				b.keep("a", inShop)
				b.sees(inShop, "pod", "one")
				b.expect("what is there from the beginning")
				tc.change(b.server)
				b.expect(name, tc.want...)
			})
		})
	}
}

func edit(change func(*unstructured.Unstructured)) func(*server) {
	return func(s *server) { s.change("shop", "pod", change) }
}

func TestAnObjectIsKnownAgainWhenItsLabelIsRestored(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.server.put(object("shop", "pod", "1", "a", "one"))
		b.keep("a", inShop)
		edit(func(o *unstructured.Unstructured) { o.SetLabels(nil) })(b.server)
		b.misses(inShop, "pod", true)
		b.expect("stripped", "a: pod Vanished")
		edit(func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{label: "a"}) })(b.server)
		b.sees(inShop, "pod", "one")
		b.expect("put back", "a: pod Content")
	})
}

func TestAMistakeInReduceCostsOnlyTheRecord(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.server.put(object("shop", "bad", "1", "a", "panic"))
		b.server.put(object("shop", "pod", "2", "a", "one"))
		b.keep("a", inShop)
		b.sees(inShop, "pod", "one")
		b.misses(inShop, "bad", false)
		b.server.change("shop", "bad", func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{"x": "y"}) })
		b.expect("what changed is not known, so the owner is notified", "a: bad Content")
		b.server.change("shop", "bad", func(o *unstructured.Unstructured) { o.Object["spec"] = "good" })
		b.expect("readable", "a: bad Content")
		b.sees(inShop, "bad", "good")
	})
}

func TestAPanicOfChangedEndsNothing(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.store.options.Changed = func(Change) { panic("mistake") }
		b.server.put(object("shop", "pod", "1", "a", "one"))
		b.keep("a", inShop)
		edit(func(o *unstructured.Unstructured) { o.Object["spec"] = "two" })(b.server)
		b.sees(inShop, "pod", "two")
		b.asked("nothing is watched anew", "watch")
	})
}

func TestObjectsFromOtherPlacesAreNotReturned(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.server.set(func(s *server) { s.refuse = forbid("") })
		b.keep("a", inShop)
		for _, unowned := range []*unstructured.Unstructured{
			object("other", "pod", "1", "a", "x"), object("", "pod", "1", "a", "x"),
			object("shop", "", "1", "a", "x"), object("shop", "pod", "", "a", "x"),
		} {
			b.server.set(func(s *server) { s.streams[0].events <- fakeEvent{what: "ADDED", object: unowned} })
		}
		b.expect("objects of no owner")
		if stats := sizesOf(b.store); stats.records != 0 {
			t.Errorf("%+v", stats)
		}
	})
}

func TestAChangeNamesItsOwnerIfTheObjectEverHadTheAnnotation(t *testing.T) {
	a, b := plan.OwnerRef{Kind: "Shop", Name: "a"}, plan.OwnerRef{Kind: "Shop", Name: "b"}
	as := func(version, owner string, ref plan.OwnerRef) *record {
		return recordOf(plan.Observation{Existence: plan.Present, UID: "u", ResourceVersion: version, ObservedHash: version, Ownership: plan.Ownership{OwnerID: owner, Ref: ref}})
	}
	none := plan.OwnerRef{}
	for name, tc := range map[string]struct {
		old, live *record
		want      map[string]bool // whether it names its owner, by owner
	}{
		"created":                    {nil, as("1", "a", a), map[string]bool{"a": true}},
		"edited":                     {as("1", "a", a), as("2", "a", a), map[string]bool{"a": true}},
		"the annotation is removed":  {as("1", "a", a), as("2", "a", none), map[string]bool{"a": true}},
		"the annotation is put back": {as("1", "a", none), as("2", "a", a), map[string]bool{"a": true}},
		"gone, or without any ownership metadata": {as("1", "a", a), nil, map[string]bool{"a": true}},
		"handed over":                       {as("1", "a", a), as("2", "b", b), map[string]bool{"a": true, "b": true}},
		"a copy of the label":               {nil, as("1", "a", none), map[string]bool{"a": false}},
		"a copy of the label is edited":     {as("1", "a", none), as("2", "a", none), map[string]bool{"a": false}},
		"a copy of the label is gone":       {as("1", "a", none), nil, map[string]bool{"a": false}},
		"the label of another is put on it": {as("1", "a", a), as("2", "b", none), map[string]bool{"a": true, "b": false}},
	} {
		got := map[string]bool{}
		for _, change := range difference(plan.Key{Name: "pod"}, tc.old, tc.live, "") {
			got[change.Owner] = change.NamesOwner
		}
		check.EqualNamed(t, name, tc.want, got)
	}
}

func TestOnlyAnEditIsReportedAsAnEdit(t *testing.T) {
	before := func() plan.Observation {
		return plan.Observation{Existence: plan.Present, UID: "u", ResourceVersion: "1", ObservedHash: "one", Ownership: plan.Ownership{OwnerID: "a"}}
	}
	for name, tc := range map[string]struct {
		change func(*plan.Observation)
		edited bool
	}{
		"content":                        {func(o *plan.Observation) { o.ObservedHash = "two" }, true},
		"content and an output":          {func(o *plan.Observation) { o.ObservedHash, o.Status.Outputs = "two", "two" }, true},
		"content and state":              {func(o *plan.Observation) { o.ObservedHash, o.Status.Readiness = "two", plan.Failed }, false},
		"deletion":                       {func(o *plan.Observation) { o.ObservedHash, o.DeletionTimestamp = "two", time.Unix(1, 0) }, false},
		"other owner":                    {func(o *plan.Observation) { o.ObservedHash, o.Ownership.OwnerID = "two", "b" }, false},
		"the annotation of another tool": {func(o *plan.Observation) { o.ObservedHash, o.Ownership.OtherOwners = "two", []string{"Helm release x"} }, false},
		"finalizer":                      {func(o *plan.Observation) { o.ObservedHash, o.Finalizers = "two", []string{"x"} }, false},
		"other object":                   {func(o *plan.Observation) { o.ObservedHash, o.UID = "two", "v" }, false},
	} {
		live := before()
		live.ResourceVersion = "2"
		tc.change(&live)
		changes := difference(plan.Key{Name: "pod"}, recordOf(before()), recordOf(live), "")
		if len(changes) == 0 || changes[0].What != Content || changes[0].Edited != tc.edited {
			t.Errorf("%s: notified of %+v", name, changes)
		}
	}
	for name, tc := range map[string]struct {
		change func(*plan.Observation)
		what   What
	}{
		"output":               {func(o *plan.Observation) { o.Status.Outputs = "two" }, Output},
		"readiness and output": {func(o *plan.Observation) { o.Status.Readiness, o.Status.Outputs = plan.Failed, "two" }, Readiness},
	} {
		live := before()
		live.ResourceVersion = "2"
		tc.change(&live)
		changes := difference(plan.Key{Name: "pod"}, recordOf(before()), recordOf(live), "")
		if len(changes) != 1 || changes[0].What != tc.what {
			t.Errorf("%s: notified of %+v", name, changes)
		}
	}
	for name, changes := range map[string][]Change{
		"gone": difference(plan.Key{Name: "pod"}, recordOf(before()), nil, ""),
		"new":  difference(plan.Key{Name: "pod"}, nil, recordOf(before()), ""),
	} {
		if len(changes) != 1 || changes[0].Edited {
			t.Errorf("%s: notified of %+v", name, changes)
		}
	}
}

func TestHowAnObjectHadEndedThatAWatchSawGo(t *testing.T) {
	became := func(status string) func(*server) {
		return edit(func(o *unstructured.Unstructured) { o.Object["status"] = status })
	}
	remove := func(s *server) { s.remove("shop", "pod") }
	tests := map[string]struct {
		what []func(*server)
		uid  types.UID
		want plan.Finish
	}{
		"it was complete":          {[]func(*server){became("complete"), remove}, "1", plan.FinishComplete},
		"it had failed":            {[]func(*server){became("failed"), remove}, "1", plan.FinishFailed},
		"it had not ended":         {[]func(*server){became("runs"), remove}, "1", plan.Unfinished},
		"it is there":              {[]func(*server){became("complete")}, "1", plan.FinishUnknown},
		"another object":           {[]func(*server){became("complete"), remove}, "2", plan.FinishUnknown},
		"no object":                {[]func(*server){became("complete"), remove}, "", plan.FinishUnknown},
		"both came together":       {[]func(*server){(*server).hold, became("complete"), remove, (*server).release}, "1", plan.FinishComplete},
		"only a list shows it":     {[]func(*server){became("runs"), lose(remove)}, "1", plan.FinishUnknown},
		"complete, and in no list": {[]func(*server){became("complete"), lose(remove)}, "1", plan.FinishComplete},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(b *bed) {
				b.server.put(object("shop", "pod", "1", "a", "one"))
				b.keep("a", inShop)
				for _, change := range test.what {
					change(b.server)
					advance(2 * time.Second)
				}
				advance(time.Minute)
				check.Same(t, test.want, b.store.Ending(inShop, "pod", test.uid))
			})
		})
	}
}

// lose makes a change while no watch is open, and after it the watch starts with a list.
func lose(change func(*server)) func(*server) {
	return func(s *server) {
		s.set(func(s *server) { s.refuse = func(string, string) error { return errors.New("down") } })
		s.cut()
		time.Sleep(time.Minute)
		change(s)
		s.set(func(s *server) { s.refuse = nil })
	}
}
