// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/internal/clients"
)

// The pool may let go of a target after somebody has entered it.
func TestNoEngineIsKeptForATargetThatNobodyWillGetAgain(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	ts := newTargets(&rest.Config{Host: "http://127.0.0.1:1"}, runtime.NewScheme(), h.settings, 1,
		func() []byte { return nil }, &clusterUID{}, newTriggers(), time.Now)
	lease, err := ts.pool.Enter(clients.Access{}, types.NamespacedName{})
	if err != nil {
		t.Fatal(err)
	}
	ts.pool.Close()
	found, err := ts.on(lease, true)
	if err != nil || found.engine == nil {
		t.Fatalf("whoever entered it cannot go on: %v", err)
	}
	found.leave()
	if len(ts.engines) > 0 {
		t.Errorf("%d engines are kept", len(ts.engines))
	}
}
