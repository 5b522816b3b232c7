// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
)

// TestAProcessThatStartsListsAFleetOnce handles the components of a fleet in the order of their names.
func TestAProcessThatStartsListsAFleetOnce(t *testing.T) {
	const fleet, page = 1400, 500
	type step struct {
		name     string
		from, to int // the components that are handled
		every    time.Duration
		do       func(f *walkedFleet)
		lists    int       // up to now
		unread   int       // how many of them were not known
		at       time.Time // when the others were read; zero if that does not matter
	}
	start := time.Unix(1000, 0)
	all := func(*walkedFleet) {}
	for name, steps := range map[string][]step{
		"page by page, however long it takes": {
			{name: "the first page", to: page, every: 10 * time.Millisecond, do: all, lists: 1, at: start},
			{name: "the second page", from: page, to: 2 * page, every: 100 * time.Millisecond, do: all, lists: 2, at: start},
			{name: "the last page", from: 2 * page, to: fleet, every: 10 * time.Millisecond, do: all, lists: 3, at: start},
			{name: "another list, which is short-lived", to: 16, every: time.Second, do: all, lists: 15},
		},
		"others are listed as always": {
			{name: "some of the first page", to: 100, do: all, lists: 1, at: start},
			{name: "far ahead, which reads no page", from: 1000, to: 1001, do: all, lists: 3, unread: 1},
			{name: "back again", from: 100, to: 400, do: all, lists: 3, at: start},
			{name: "far ahead, which reads a page", from: 600, to: 601, do: all, lists: 4, at: start},
			{name: "what was handled", to: 50, do: all, lists: 4},
		},
		"a component that has changed is read": {
			{name: "one", to: 1, do: all, lists: 1},
			{name: "those that have changed", from: 1, to: 5, do: func(f *walkedFleet) { f.change(1, 5) }, lists: 1, unread: 4},
			{name: "those that have not", from: 5, to: 100, do: all, lists: 1},
		},
		"a component that was read by itself is not taken from an older list": {
			{name: "one", to: 1, do: all, lists: 1},
			{name: "urgent ones", from: 1, to: 5, do: func(f *walkedFleet) { f.urgent = true }, lists: 1, unread: 4},
			{name: "the same again", from: 1, to: 5, every: time.Millisecond, do: func(f *walkedFleet) { f.urgent, f.now = false, start.Add(time.Second) }, lists: 3, at: start.Add(time.Second)},
			{name: "others", from: 5, to: 10, do: all, lists: 3, at: start},
		},
		"the watch shows our own writes": {
			{name: "some", to: 100, do: all, lists: 1, at: start},
			{name: "a write that it does not show yet", from: 100, to: 101, do: func(f *walkedFleet) { f.now = start.Add(10 * time.Second); f.wrote("2", start.Add(8*time.Second)) }, lists: 1, at: start},
			{name: "it shows the write", from: 101, to: 110, do: func(f *walkedFleet) { f.change(0, 1) }, lists: 1, at: start.Add(8 * time.Second)},
			{name: "and not the next ones, of which the first is awaited", from: 110, to: 120, do: func(f *walkedFleet) {
				f.wrote("3", start.Add(8500*time.Millisecond))
				f.wrote("2", start.Add(9*time.Second))
			}, lists: 1, at: start.Add(8 * time.Second)},
			{name: "until one takes its place", from: 120, to: 130, do: func(f *walkedFleet) { f.wrote("2", start.Add(14*time.Second)) }, lists: 1, at: start.Add(14 * time.Second)},
			{name: "an earlier one", from: 130, to: 140, do: func(f *walkedFleet) { f.wrote("1", start.Add(12*time.Second)) }, lists: 1, at: start.Add(14 * time.Second)},
			{name: "one that has changed since", from: 140, to: 141, do: func(f *walkedFleet) { f.change(140, 141) }, lists: 1, unread: 1},
			{name: "writes of another namespace say nothing", from: 141, to: 142, do: func(f *walkedFleet) {
				f.noteWrite(client.ObjectKey{Namespace: "other", Name: "w0000"}, "1", start.Add(15*time.Second))
			}, lists: 1, at: start.Add(14 * time.Second)},
			{name: "a version that is no number says nothing", from: 142, to: 143, do: func(f *walkedFleet) { f.wrote("x", start.Add(16*time.Second)) }, lists: 1, at: start.Add(14 * time.Second)},
		},
		"the server ends the list": {
			{name: "the first page", to: page, do: all, lists: 1},
			{name: "the rest", from: page, to: page + 100, do: func(f *walkedFleet) { f.broken = true }, lists: 4},
		},
		"it takes too long": {
			{name: "some", to: 10, do: all, lists: 1, at: start},
			{name: "more", from: 10, to: 20, do: func(f *walkedFleet) { f.now = start.Add(6 * time.Minute) }, lists: 3, at: start.Add(6 * time.Minute)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newWalkedFleet(t, fleet)
			for _, s := range steps {
				s.do(f)
				unread := 0
				for _, key := range f.keys[s.from:] {
					f.waiting[key] = true
				}
				for _, key := range f.keys[s.from:s.to] {
					delete(f.waiting, key)
					at, known := f.read(t.Context(), key)
					if !known {
						unread++
					} else if !s.at.IsZero() && !at.Equal(s.at) {
						t.Errorf("%s: %s was read at %s, want %s", s.name, key, at, s.at)
					}
					f.now = f.now.Add(s.every)
				}
				if unread != s.unread || f.lists != s.lists {
					t.Errorf("%s: %d were not known, after %d lists; want %d and %d", s.name, unread, f.lists, s.unread, s.lists)
				}
			}
		})
	}
}

func TestAFleetIsNotListedWhileFewOfItAreHandled(t *testing.T) {
	const fleet, bulkLife = 100, 3 * time.Second // what was listed is too old then
	widgets, waiting := make([]client.Object, fleet), map[client.ObjectKey]bool{}
	for i := range widgets {
		widgets[i] = &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("w", i)}}
		waiting[client.ObjectKeyFromObject(widgets[i])] = true
	}
	lists, now, broken := 0, time.Unix(1000, 0), false
	server := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(widgets...).Build()
	counting := interceptor.NewClient(server, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if lists++; broken && lists%2 == 0 {
				return errors.New("the second page does not fit the type")
			}
			err := c.List(ctx, list, options...)
			if broken {
				list.SetContinue("second")
			}
			return err
		},
	})
	kind := widget.GroupVersion.WithKind("Widget")
	read, _ := component.NewBulkRead[*widget.Widget](counting, kind, func() map[client.ObjectKey]bool { return maps.Clone(waiting) }, func(client.ObjectKey) bool { return false }, func() time.Time { return now })
	next := 0
	want := func(known bool, requests int) {
		t.Helper()
		key := client.ObjectKeyFromObject(widgets[next])
		next++
		delete(waiting, key)
		if _, found := read(t.Context(), key); found != known || lists != requests {
			t.Errorf("%s is known: %t, after %d lists; want %t and %d", key.Name, found, lists, known, requests)
		}
	}
	miss := func(n, requests int) {
		t.Helper()
		for range n {
			late := client.ObjectKey{Namespace: "default", Name: fmt.Sprint("late", len(waiting), next, requests, n)} // is in no list
			waiting[late] = true
			if _, found := read(t.Context(), late); found || lists != requests {
				t.Errorf("one that was created after the list is known, after %d lists, want %d", lists, requests)
			}
		}
	}
	for range 20 {
		want(true, 1)
	}
	miss(20, 1)             // of all others, that list may still be of use
	now = now.Add(bulkLife) // as many were used as were missed
	want(true, 2)
	miss(2, 2)
	now = now.Add(bulkLife) // more were missed
	want(false, 2)
	now = now.Add(bulkLife)
	want(true, 3)
	miss(2, 3)
	now = now.Add(bulkLife) // for the second time
	want(false, 3)
	now = now.Add(bulkLife)
	want(false, 3)
	now = now.Add(bulkLife)
	want(true, 4)
	want(true, 4)
	miss(2, 4)
	now = now.Add(bulkLife)
	want(true, 5)
	miss(2, 5)
	now = now.Add(bulkLife) // for the first time again
	want(false, 5)
	now = now.Add(bulkLife)
	want(true, 6)

	broken = true
	now = now.Add(bulkLife)
	want(true, 8)
	miss(2, 8)
	for range 2 {
		now = now.Add(bulkLife)
		want(false, 8)
	}
	now = now.Add(time.Minute)
	want(true, 10)
}

// walkedFleet are components on a server that returns lists by pages.
type walkedFleet struct {
	keys    []client.ObjectKey
	waiting map[client.ObjectKey]bool
	read    func(context.Context, client.ObjectKey) (time.Time, bool)
	now     time.Time
	// noteWrite notes a write of a component.
	noteWrite func(client.ObjectKey, string, time.Time)
	lists     int
	broken    bool // the next list is not continued
	urgent    bool // users wait
	changed   map[client.ObjectKey]bool
}

func newWalkedFleet(t *testing.T, size int) *walkedFleet {
	f := &walkedFleet{waiting: map[client.ObjectKey]bool{}, now: time.Unix(1000, 0), changed: map[client.ObjectKey]bool{}}
	for i := range size {
		key := client.ObjectKey{Namespace: "default", Name: fmt.Sprintf("w%04d", i)}
		f.keys, f.waiting[key] = append(f.keys, key), true
	}
	server := interceptor.NewClient(fake.NewClientBuilder().WithScheme(newScheme(t)).Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			o := (&client.ListOptions{}).ApplyOptions(options)
			list := into.(*widget.WidgetList)
			from, _ := strconv.Atoi(o.Continue)
			if f.lists++; f.broken && from > 0 {
				f.broken = false
				return apierrors.NewResourceExpired("the list is too old")
			}
			to := min(from+int(o.Limit), len(f.keys))
			for _, key := range f.keys[from:to] {
				list.Items = append(list.Items, widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, ResourceVersion: "1"}})
			}
			if to < len(f.keys) {
				list.Continue = strconv.Itoa(to)
			}
			return nil
		},
		// What the watch shows.
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
			into.SetResourceVersion("1")
			if f.changed[key] {
				into.SetResourceVersion("2")
			}
			return nil
		},
	})
	kind := widget.GroupVersion.WithKind("Widget")
	f.read, f.noteWrite = component.NewBulkRead[*widget.Widget](server, kind, func() map[client.ObjectKey]bool { return maps.Clone(f.waiting) }, func(client.ObjectKey) bool { return f.urgent }, func() time.Time { return f.now })
	return f
}

// wrote notes a write of the first component.
func (f *walkedFleet) wrote(version string, sent time.Time) { f.noteWrite(f.keys[0], version, sent) }

// change changes components.
func (f *walkedFleet) change(from, to int) {
	for _, key := range f.keys[from:to] {
		f.changed[key] = true
	}
}
