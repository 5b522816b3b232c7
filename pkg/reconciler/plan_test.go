// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

// plan plans what applying would do.
func (b *bench) plan(request reconciler.ApplyRequest) reconciler.Plan {
	b.t.Helper()
	request.Inventory = b.inventory
	plan, err := b.engine.Plan(b.t.Context(), request)
	if err != nil {
		b.t.Fatal(err)
	}
	return plan
}

// requestOfOther is the request of another owner, who keeps its own record.
func (b *bench) requestOfOther(objects ...client.Object) *reconciler.ApplyRequest {
	other := b.request(objects...)
	other.Owner.Name, other.Owner.UID, other.Inventory = "other", "2", reconciler.Inventory{}
	other.Record = func(_ context.Context, inventory reconciler.Inventory) error {
		other.Inventory = inventory
		return nil
	}
	return &other
}

// waitFor lets another owner wait for the object shared, which is ours.
func (b *bench) waitFor(engine *reconciler.Reconciler) {
	b.t.Helper()
	other := b.requestOfOther(config("shared", "2"))
	if _, err := engine.Apply(b.t.Context(), *other); err == nil {
		b.t.Error("the other took it")
	}
}

func TestAPlanMindsWhatOthersWaitForAsApplyDoes(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("shared", "1"), config("mine", "1"))
	b.waitFor(b.engine)
	plan := b.plan(b.request(config("mine", "1")))
	want := "note     ConfigMap " + b.namespace + "/shared: handed over to Release " + b.namespace + "/other, which waits for it"
	if got := plan.String(); !strings.Contains(got, "orphan   ConfigMap "+b.namespace+"/shared") || !strings.Contains(got, want) {
		t.Errorf("got\n%s", got)
	}
}

func TestAPlanTellsWhatBearsOurMarksAndIsInNoInventory(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("a", "1"))
	b.inventory = reconciler.Inventory{}
	if got := b.plan(b.request(config("a", "1"))).String(); !strings.Contains(got, "found: it bears the ownership marks of this component") {
		t.Errorf("got\n%s", got)
	}
}

func TestAPlanTellsNoSecrets(t *testing.T) {
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
	got := b.plan(b.request(config("a", "1"), secret)).String()
	if strings.Contains(got, value) || !strings.Contains(got, "OwnerConflict") {
		t.Errorf("got\n%s", got)
	}
}
