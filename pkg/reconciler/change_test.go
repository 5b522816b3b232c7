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
	r := &Reconciler{observer: &observe.Observer{}, settings: settings{
		now: func() time.Time { return now }, changed: func(_ Owner, change Change) { told = append(told, change) },
	}}
	r.followed.add("main", plan.OwnerRef{Name: "main"})
	key := plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "lease"}
	for i := range 20 {
		r.observer.Suspicions.Allow("main", key, strconv.Itoa(i), now)
	}
	for name, tc := range map[string]struct {
		change watch.Change
		waits  bool
	}{
		"an edit":                {watch.Change{Owner: "main", Key: key, What: watch.Content, Edited: true}, true},
		"deleted, or taken over": {watch.Change{Owner: "main", Key: key, What: watch.Content}, false},
		"vanished":               {watch.Change{Owner: "main", Key: key, What: watch.Vanished}, false},
		"its status":             {watch.Change{Owner: "main", Key: key, What: watch.Readiness}, false},
		"an edit of another":     {watch.Change{Owner: "main", Key: plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "other"}, What: watch.Content, Edited: true}, false},
	} {
		told = nil
		if r.changed(tc.change); len(told) != 1 || told[0].After > 0 != tc.waits {
			t.Errorf("%s: told is %+v", name, told)
		}
	}
	if r.changed(watch.Change{Owner: "nobody", Key: key}); len(told) != 1 {
		t.Errorf("told is %+v", told)
	}
}
