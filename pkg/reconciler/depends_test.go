// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

// whenYes makes an object that is ready when its value is "yes".
const whenYes = `self.data.value == "yes"`

func TestAnObjectWaitsForWhatItDependsOnAndIsRemovedBeforeIt(t *testing.T) {
	b := newBench(t)
	base := config("base", "no", "ready-when", whenYes)
	user := config("another", "1", "depends-on", "ConfigMap/base")
	outcome, err := b.apply(base, user)
	if err != nil {
		t.Fatal(err)
	}
	if b.get("base") == nil || b.get("another") != nil {
		t.Fatal("the object did not wait")
	}
	waits := map[string]string{}
	for _, wait := range outcome.Waiting {
		waits[wait.Key.Name] = string(wait.Reason) + ": " + wait.Message
	}
	if want := "Order: waits for ConfigMap " + b.namespace + "/base, which it depends on"; waits["another"] != want {
		t.Errorf("it waits for %q, want %q", waits["another"], want)
	}
	b.mustApply(config("base", "yes", "ready-when", whenYes), user)
	if b.get("another") == nil {
		t.Fatal("the object still waits")
	}

	held := b.get("another")
	held.Finalizers = []string{"example.com/hold"}
	if err := b.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	if outcome, err := b.delete(); err != nil || outcome.Done() {
		t.Fatalf("delete: %v, done %t", err, outcome.Done())
	}
	if base := b.get("base"); base == nil || !base.DeletionTimestamp.IsZero() {
		t.Fatal("it was removed before what depends on it")
	}
	held = b.get("another")
	held.Finalizers = nil
	if err := b.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	if outcome, err := b.delete(); err != nil || !outcome.Done() || b.get("base") != nil {
		t.Fatalf("delete: %v, waiting for %v", err, outcome.Waiting)
	}
}

func TestImpossibleDependenciesAreReportedTogetherBeforeAnyWrite(t *testing.T) {
	b := newBench(t)
	_, err := b.engine.Apply(t.Context(), reconciler.ApplyRequest{
		Owner: b.owner(), Namespace: b.namespace, Record: b.record,
		Objects: []client.Object{
			config("good", "1"),
			config("lost", "1", "depends-on", "ConfigMap/nowhere"),
			config("egg", "1", "depends-on", "ConfigMap/hen"),
			config("hen", "1", "depends-on", "ConfigMap/egg"),
			config("early", "1", "depends-on", "ConfigMap/late"),
			config("late", "1", "apply-order", "3"),
		},
	})
	if _, invalid := errors.AsType[*reconciler.InvalidError](err); !invalid {
		t.Fatalf("got %v, want an InvalidError", err)
	}
	for _, part := range []string{
		"lost: depends on \"ConfigMap/nowhere\", which is not among",
		"egg: depends on itself: ConfigMap " + b.namespace + "/egg -> ConfigMap " + b.namespace + "/hen",
		"early: depends on the ConfigMap " + b.namespace + "/late with the apply-order 3, which is greater than 0",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q:\n%v", part, err)
		}
	}
	if b.get("good") != nil || b.records > 0 {
		t.Error("something was written or recorded")
	}
}
