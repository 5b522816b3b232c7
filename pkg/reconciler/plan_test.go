// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

// plan returns what applying would do, as text.
func (b *bench) plan(request reconciler.ApplyRequest) string {
	b.t.Helper()
	request.Inventory = b.inventory
	plan, err := b.engine.Plan(b.t.Context(), request)
	if err != nil {
		b.t.Fatal(err)
	}
	return fmt.Sprintf("%+v", plan)
}

func TestPlanReturnsWhatApplyWouldDoAndWritesNothing(t *testing.T) {
	b := newBench(t)
	got := b.plan(b.request(config("a", "1")))
	if want := "[{Key:ConfigMap " + b.namespace + "/a Verb:create Reason:missing}]"; !strings.Contains(got, want) {
		t.Errorf("got the plan\n%s\nwant it to contain\n%s", got, want)
	}
	if b.get("a") != nil {
		t.Error("the plan was executed")
	}
}

func TestAPlanHandsAnObjectOverToAnOwnerThatWaitsForItAsApplyDoes(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("shared", "1"), config("mine", "1"))
	b.letOtherWait()
	got := b.plan(b.request(config("mine", "1")))
	want := "handed over to Release " + b.namespace + "/other, which waits for it"
	if !strings.Contains(got, "/shared Verb:orphan") || !strings.Contains(got, want) {
		t.Errorf("got\n%s", got)
	}
}

func TestAPlanNotesOrphans(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("a", "1"))
	b.inventory = reconciler.Inventory{}
	if got := b.plan(b.request(config("a", "1"))); !strings.Contains(got, "found: it has the ownership label and annotation of this component") {
		t.Errorf("got\n%s", got)
	}
}

func TestAPlanHoldsNoSecrets(t *testing.T) {
	b := newBench(t)
	const value = "correct-horse-battery-staple"
	if err := b.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: b.namespace, Name: "a", Annotations: map[string]string{"meta.helm.sh/release-name": value},
	}}); err != nil {
		t.Fatal(err)
	}
	secret := config("credentials", "1")
	secret.Object["kind"], secret.Object["stringData"] = "Secret", map[string]any{"password": value}
	delete(secret.Object, "data")
	if got := b.plan(b.request(config("a", "1"), secret)); strings.Contains(got, value) || !strings.Contains(got, "OwnerConflict") {
		t.Errorf("got\n%s", got)
	}
}
