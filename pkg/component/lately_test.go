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
	instructions := map[string]string{"test.corbel.run/allow-empty": "true"}
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
		digest: "digest", uid: "1", generation: 3, instructions: instructions, until: now.Add(time.Minute),
		objects: make([]client.Object, 2),
	}
	l.keep(client.ObjectKeyFromObject(component(unchanged)), known)
	for name, tc := range map[string]struct {
		component    *widget
		instructions map[string]string
		now          time.Time
		want         bool
	}{
		"the same":              {component: component(unchanged), instructions: instructions, now: now, want: true},
		"another spec":          {component: component(func(w *widget) { w.Generation = 4 }), instructions: instructions, now: now},
		"made anew":             {component: component(func(w *widget) { w.UID = "2" }), instructions: instructions, now: now},
		"another annotation":    {component: component(unchanged), now: now},
		"somebody wrote status": {component: component(func(w *widget) { w.Status.ProcessingDigest = "" }), instructions: instructions, now: now},
		"another component":     {component: component(func(w *widget) { w.Name = "other" }), instructions: instructions, now: now},
		"a full pass is due":    {component: component(unchanged), instructions: instructions, now: now.Add(time.Minute)},
	} {
		if _, got := l.of(tc.component, tc.instructions, tc.now); got != tc.want {
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
