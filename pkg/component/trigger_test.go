// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

func TestAPassIsLightIfNothingButDependentsChanged(t *testing.T) {
	key := client.ObjectKey{Namespace: "shop", Name: "main"}
	owner := reconciler.Owner{Namespace: "shop", Name: "main"}
	status, content := reconciler.Change{What: reconciler.EventStatus}, reconciler.Change{What: reconciler.EventContent}
	for name, tc := range map[string]struct {
		before func(*triggers)
		light  bool
		after  map[client.ObjectKey]time.Duration
	}{
		"nothing happened":              {before: func(*triggers) {}, after: map[client.ObjectKey]time.Duration{}},
		"a status changed":              {before: func(tr *triggers) { tr.onChange(owner, status) }, light: true, after: map[client.ObjectKey]time.Duration{key: settling}},
		"content changed":               {before: func(tr *triggers) { tr.onChange(owner, content) }, light: true, after: map[client.ObjectKey]time.Duration{key: 0}},
		"both changed":                  {before: func(tr *triggers) { tr.onChange(owner, content); tr.onChange(owner, status) }, light: true, after: map[client.ObjectKey]time.Duration{key: 0}},
		"a trigger":                     {before: func(tr *triggers) { tr.wake(key) }, after: map[client.ObjectKey]time.Duration{key: 0}},
		"a trigger, then a change":      {before: func(tr *triggers) { tr.wake(key); tr.onChange(owner, status) }, after: map[client.ObjectKey]time.Duration{key: 0}},
		"a change, then a trigger":      {before: func(tr *triggers) { tr.onChange(owner, status); tr.wake(key) }, after: map[client.ObjectKey]time.Duration{key: 0}},
		"a change before the last pass": {before: func(tr *triggers) { tr.onChange(owner, status); tr.take(); tr.begin(key) }, after: map[client.ObjectKey]time.Duration{}},
	} {
		tr := newTriggers()
		tc.before(tr)
		if diff := cmp.Diff(tc.after, tr.take()); diff != "" {
			t.Errorf("%s: what goes to the queue (-want +got):\n%s", name, diff)
		}
		if light := tr.begin(key); light != tc.light {
			t.Errorf("%s: light %v", name, light)
		}
		if tr.begin(key) {
			t.Errorf("%s: the next pass is light without a cause", name)
		}
	}
}

func TestADelayedPassIsLightOnlyWhenItIsDue(t *testing.T) {
	key := client.ObjectKey{Namespace: "shop", Name: "main"}
	tr := newTriggers()
	tr.changed(key, time.Hour)
	tr.changed(key, 200*time.Millisecond) // sooner counts
	tr.changed(key, time.Hour)
	if tr.begin(key) || len(tr.take()) > 0 {
		t.Error("a pass before it is due is light")
	}
	deadline := time.Now().Add(20 * time.Second)
	for len(tr.take()) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("it is not due")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !tr.begin(key) || len(tr.delayed) > 0 {
		t.Error("the pass that is due is not light, or something is left")
	}
}

func TestWithWatchesOfOthersNoPassIsLight(t *testing.T) {
	tr := newTriggers()
	tr.full = true
	tr.changed(client.ObjectKey{Name: "main"}, 0)
	if tr.begin(client.ObjectKey{Name: "main"}) {
		t.Error("it is")
	}
}
