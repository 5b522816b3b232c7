// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestWhatWasFoundOutHoldsAsLongAsTheComponentIsTheSame(t *testing.T) {
	now := time.Unix(1000, 0)
	component := func(change func(*widget)) *widget {
		w := &widget{}
		w.Namespace, w.Name, w.UID, w.Generation = "shop", "main", "1", 3
		w.Status.ProcessingDigest = "digest/manifests"
		change(w)
		return w
	}
	unchanged := func(*widget) {}
	l := newLately()
	known := prepared{
		digest: "digest", root: rootOf(component(unchanged)), until: now.Add(time.Minute), objects: make([]client.Object, 2),
	}
	l.keep(client.ObjectKeyFromObject(component(unchanged)), known)
	for name, tc := range map[string]struct {
		component *widget
		now       time.Time
		want      bool
	}{
		"the same":              {component: component(unchanged), now: now, want: true},
		"another spec":          {component: component(func(w *widget) { w.Generation = 4 }), now: now},
		"made anew":             {component: component(func(w *widget) { w.UID = "2" }), now: now},
		"another annotation":    {component: component(func(w *widget) { w.Annotations = map[string]string{"tier": "gold"} }), now: now},
		"another label":         {component: component(func(w *widget) { w.Labels = map[string]string{"tier": "gold"} }), now: now},
		"somebody wrote status": {component: component(func(w *widget) { w.Status.ProcessingDigest = "" }), now: now},
		"another component":     {component: component(func(w *widget) { w.Name = "other" }), now: now},
		"a full pass is due":    {component: component(unchanged), now: now.Add(time.Minute)},
	} {
		if _, got := l.of(tc.component, tc.now); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	l := newLately()
	for i := range 10 {
		l.keep(client.ObjectKey{Name: string(rune('a' + i))}, prepared{objects: make([]client.Object, maxLately/4)})
		if l.size > maxLately {
			t.Fatalf("%d objects are kept", l.size)
		}
	}
	if len(l.byKey) != 4 {
		t.Errorf("%d components are kept", len(l.byKey))
	}
	l.keep(client.ObjectKey{Name: "large"}, prepared{objects: make([]client.Object, maxLately+1)})
	if _, kept := l.byKey[client.ObjectKey{Name: "large"}]; kept {
		t.Error("what is too much is kept")
	}
	for key := range l.byKey {
		l.forget(key)
	}
	if l.size != 0 {
		t.Errorf("%d objects are left", l.size)
	}
}

func TestWhenTheNextFullPassIsDueIsKnownUntilThen(t *testing.T) {
	now, l, key := time.Unix(1000, 0), newLately(), client.ObjectKey{Name: "main"}
	l.keep(key, prepared{until: now.Add(time.Minute)})
	for name, tc := range map[string]struct {
		now   time.Time
		due   time.Duration
		known bool
	}{
		"long before":   {now: now, due: time.Minute, known: true},
		"right before":  {now: now.Add(time.Minute - time.Millisecond), due: minInterval, known: true},
		"when it is":    {now: now.Add(time.Minute)},
		"long after it": {now: now.Add(time.Hour)},
	} {
		if due, known := l.dueIn(key, tc.now); known != tc.known || known && due != tc.due {
			t.Errorf("%s: due in %s, %v", name, due, known)
		}
	}
}
