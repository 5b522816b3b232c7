// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// The pool may let go of a target after somebody has entered it.
func TestNoEngineIsKeptForATargetThatNobodyWillGetAgain(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	ts := newTargets(&rest.Config{Host: "http://127.0.0.1:1"}, runtime.NewScheme(), h.settings, 1,
		func() []byte { return nil }, &clusterUID{}, newTriggers(), time.Now)
	lease, err := ts.pool.Acquire(target.Access{}, types.NamespacedName{})
	if err != nil {
		t.Fatal(err)
	}
	ts.pool.Close()
	found, err := ts.on(lease, true)
	if err != nil || found.engine == nil {
		t.Fatalf("whoever entered it cannot go on: %v", err)
	}
	found.release()
	if len(ts.engines) > 0 {
		t.Errorf("%d engines are kept", len(ts.engines))
	}
}

func TestComponentsWhoseTargetIsLetGoOfComeAgain(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	wakes := newTriggers()
	ts := newTargets(&rest.Config{Host: "http://127.0.0.1:1"}, runtime.NewScheme(), h.settings, 1,
		func() []byte { return nil }, &clusterUID{}, wakes, time.Now)
	defer ts.pool.Close()
	var used []connection
	for _, user := range []string{"here", "there"} {
		entered, err := ts.enter(identity{user: user}, types.NamespacedName{})
		if err != nil {
			t.Fatal(err)
		}
		defer entered.release()
		ts.settle(reconciler.Owner{Kind: "Widget", Namespace: "shop", Name: user, UID: "u"}, entered.engine)
		used = append(used, entered)
	}
	ts.close(used[0].lease.Target)
	if _, comes := wakes.delayed[types.NamespacedName{Namespace: "shop", Name: "here"}]; !comes || len(wakes.delayed)+len(wakes.waiting) != 1 {
		t.Errorf("those who come again: %v now, %v later", wakes.waiting, wakes.delayed)
	}
	if len(ts.homes) != 1 || len(ts.engines) != 1 {
		t.Errorf("%d components are thought to be watched by %d engines", len(ts.homes), len(ts.engines))
	}
}
