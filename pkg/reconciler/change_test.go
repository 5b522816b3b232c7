// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"strconv"
	"testing"
	"time"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/watch"
)

func TestOnlyTheEditsOfAnObjectThatIsEditedAllTheTimeWait(t *testing.T) {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	var told []Change
	r := &Reconciler{observer: &observe.Observer{DriftChecks: observe.NewDriftChecks()}, settings: settings{
		now: func() time.Time { return now }, changed: func(_ Owner, change Change) { told = append(told, change) },
	}}
	key := plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "lease"}
	other := plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "other"}
	r.watched.set("main", plan.OwnerRef{Name: "main"}, []plan.Key{key, other})
	for i := range 20 {
		r.observer.DriftChecks.Allow("main", key, strconv.Itoa(i), now)
	}
	for name, tc := range map[string]struct {
		change watch.Change
		waits  bool
	}{
		"an edit":                {watch.Change{Owner: "main", Key: key, What: watch.Content, Edited: true}, true},
		"deleted, or taken over": {watch.Change{Owner: "main", Key: key, What: watch.Content}, false},
		"vanished":               {watch.Change{Owner: "main", Key: key, What: watch.Vanished}, false},
		"its status":             {watch.Change{Owner: "main", Key: key, What: watch.Readiness}, false},
		"an edit of another":     {watch.Change{Owner: "main", Key: other, What: watch.Content, Edited: true}, false},
	} {
		told = nil
		if r.onChange(tc.change); len(told) != 1 || told[0].After > 0 != tc.waits {
			t.Errorf("%s: told is %+v", name, told)
		}
	}
	if r.onChange(watch.Change{Owner: "unknown", Key: key}); len(told) != 1 {
		t.Errorf("told is %+v", told)
	}
}

// A controller that copies labels, or another client that writes our marks on its own objects
// own all day, must not keep the owner busy.
func TestObjectsThatOnlyBearTheMarksOfAnOwnerDoNotKeepItBusy(t *testing.T) {
	begin := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	recorded := plan.Key{Kind: "EndpointSlice", Namespace: "shop", Name: "recorded"}
	stranger := func(i int) plan.Key {
		return plan.Key{Kind: "EndpointSlice", Namespace: "shop", Name: strconv.Itoa(i)}
	}
	for name, tc := range map[string]struct {
		change   func(i int) watch.Change
		min, max int // how often the owner is to look at once, in an hour
	}{
		"a copy of the label": {func(i int) watch.Change {
			return watch.Change{Owner: "main", Key: stranger(0), What: watch.What(i % 3), Edited: i%2 == 0}
		}, 0, 0},
		"a copy of all marks": {func(i int) watch.Change {
			return watch.Change{Owner: "main", Key: stranger(0), What: watch.What(i % 3), Marked: true}
		}, 1, 40},
		"ever new copies": {func(i int) watch.Change {
			return watch.Change{Owner: "main", Key: stranger(i), What: watch.Content, Marked: true}
		}, 1, 40},
		"his own": {func(int) watch.Change {
			return watch.Change{Owner: "main", Key: recorded, What: watch.Content, Marked: true}
		}, 3600, 3600},
		"his own without the annotation": {func(int) watch.Change {
			return watch.Change{Owner: "main", Key: recorded, What: watch.Readiness}
		}, 3600, 3600},
	} {
		now, atOnce := begin, 0
		r := &Reconciler{observer: &observe.Observer{DriftChecks: observe.NewDriftChecks()}}
		r.settings.now = func() time.Time { return now }
		r.settings.changed = func(_ Owner, change Change) {
			if change.After == 0 {
				atOnce++
			}
		}
		r.watched.set("main", plan.OwnerRef{Name: "main"}, []plan.Key{recorded})
		for i := range 3600 {
			now = begin.Add(time.Duration(i) * time.Second)
			r.onChange(tc.change(i))
		}
		if atOnce < tc.min || atOnce > tc.max {
			t.Errorf("%s: %d times at once, want %d to %d", name, atOnce, tc.min, tc.max)
		}
	}
}
