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
	var notified []Change
	r := &Reconciler{observer: &observe.Observer{DriftChecks: observe.NewDriftChecks()}, settings: settings{
		now: func() time.Time { return now }, changed: func(_ Owner, change Change) { notified = append(notified, change) },
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
		"an edit":                              {watch.Change{Owner: "main", Key: key, What: watch.Content, Edited: true}, true},
		"deleted, or adopted by another owner": {watch.Change{Owner: "main", Key: key, What: watch.Content}, false},
		"vanished":                             {watch.Change{Owner: "main", Key: key, What: watch.Vanished}, false},
		"its status":                           {watch.Change{Owner: "main", Key: key, What: watch.Readiness}, false},
		"an edit of another":                   {watch.Change{Owner: "main", Key: other, What: watch.Content, Edited: true}, false},
	} {
		notified = nil
		if r.onChange(tc.change); len(notified) != 1 || notified[0].After > 0 != tc.waits {
			t.Errorf("%s: notified of %+v", name, notified)
		}
	}
	if r.onChange(watch.Change{Owner: "unknown", Key: key}); len(notified) != 1 {
		t.Errorf("notified of %+v", notified)
	}
}

// A controller that copies labels, or another client that writes our label and annotation on its
// own objects all day, must not keep the owner busy.
func TestObjectsWithACopyOfTheOwnershipMetadataAreCheckedLessAndLessOften(t *testing.T) {
	start := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	recorded := plan.Key{Kind: "EndpointSlice", Namespace: "shop", Name: "recorded"}
	unknown := func(i int) plan.Key {
		return plan.Key{Kind: "EndpointSlice", Namespace: "shop", Name: strconv.Itoa(i)}
	}
	for name, tc := range map[string]struct {
		change   func(i int) watch.Change
		min, max int // how often the owner is to look at once, in an hour
	}{
		"a copy of the label": {func(i int) watch.Change {
			return watch.Change{Owner: "main", Key: unknown(0), What: watch.What(i % 3), Edited: i%2 == 0}
		}, 0, 0},
		"a copy of label and annotation": {func(i int) watch.Change {
			return watch.Change{Owner: "main", Key: unknown(0), What: watch.What(i % 3), NamesOwner: true}
		}, 1, 40},
		"ever new copies": {func(i int) watch.Change {
			return watch.Change{Owner: "main", Key: unknown(i), What: watch.Content, NamesOwner: true}
		}, 1, 40},
		"its own": {func(int) watch.Change {
			return watch.Change{Owner: "main", Key: recorded, What: watch.Content, NamesOwner: true}
		}, 3600, 3600},
		"its own without the annotation": {func(int) watch.Change {
			return watch.Change{Owner: "main", Key: recorded, What: watch.Readiness}
		}, 3600, 3600},
	} {
		now, atOnce := start, 0
		r := &Reconciler{observer: &observe.Observer{DriftChecks: observe.NewDriftChecks()}}
		r.settings.now = func() time.Time { return now }
		r.settings.changed = func(_ Owner, change Change) {
			if change.After == 0 {
				atOnce++
			}
		}
		r.watched.set("main", plan.OwnerRef{Name: "main"}, []plan.Key{recorded})
		for i := range 3600 {
			now = start.Add(time.Duration(i) * time.Second)
			r.onChange(tc.change(i))
		}
		if atOnce < tc.min || atOnce > tc.max {
			t.Errorf("%s: %d times at once, want %d to %d", name, atOnce, tc.min, tc.max)
		}
	}
}
