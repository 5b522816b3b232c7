// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"strings"
	"testing"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

func TestADeletionIsOneRequestAndTellsWhatIsLeft(t *testing.T) {
	b := newBench(t)
	namespace := b.namespace()
	plain := b.desired(configMap(namespace, "plain"), v1alpha1.UpdatePolicyReplace)
	seen := b.must(step(plan.VerbCreate, plain, plan.Observation{}))
	b.requests()
	if gone := b.must(step(plan.VerbDelete, plain, seen)); gone.Existence != plan.Absent {
		t.Errorf("got %+v", gone)
	}
	if got := methods(b.requests()); got != "DELETE" {
		t.Errorf("the requests were %s", got)
	}

	held := b.desired(configMap(namespace, "held"), v1alpha1.UpdatePolicyReplace)
	b.must(step(plan.VerbCreate, held, plan.Observation{}))
	b.somebody(held, `metadata: {finalizers: [example.com/f]}`)
	left := b.must(step(plan.VerbDelete, held, b.observe(held)))
	if left.Existence != plan.Present || left.Deleting.IsZero() || len(left.Finalizers) != 1 {
		t.Errorf("got %+v", left)
	}
}

func TestFinalizersOfOthersSurviveAReplace(t *testing.T) {
	b := newBench(t)
	d := b.desired(strings.Replace(configMap(b.namespace(), "held"), "metadata: {", "metadata: {finalizers: [example.com/ours], ", 1), v1alpha1.UpdatePolicyReplace)
	b.must(step(plan.VerbCreate, d, plan.Observation{}))
	b.somebody(d, `metadata: {finalizers: [example.com/theirs, example.com/ours]}`)
	replaced := b.must(step(plan.VerbReplace, d, b.observe(d)))
	if got := strings.Join(replaced.Finalizers, " "); got != "example.com/theirs example.com/ours" {
		t.Errorf("got %s", got)
	}
}

func TestAnObjectIsDeletedInAnyVersion(t *testing.T) {
	b := newBench(t)
	d := b.desired(strings.Replace(deployment(b.namespace(), "old"), "apps/v1", "apps/v1", 1), v1alpha1.UpdatePolicyReplace)
	seen := b.must(step(plan.VerbCreate, d, plan.Observation{}))
	s := step(plan.VerbDelete, d, seen)
	s.Version, s.Desired = "v1beta1", nil
	if gone := b.must(s); gone.Existence != plan.Absent {
		t.Errorf("got %+v", gone)
	}
}

func TestAnOrphanLosesOurMarksAndNothingElse(t *testing.T) {
	b := newBench(t)
	manifest := strings.Replace(configMap(b.namespace(), "left"), "metadata: {", "metadata: {labels: {app: x}, annotations: {note: some}, ", 1)
	d := b.desired(manifest, v1alpha1.UpdatePolicyReplace)
	seen := b.must(step(plan.VerbCreate, d, plan.Observation{}))
	b.requests()
	left := b.must(step(plan.VerbOrphan, d, seen))
	if got := methods(b.requests()); got != "PATCH" {
		t.Errorf("the requests were %s", got)
	}
	if left.Existence != plan.Present || left.UID != seen.UID || left.Marks.OwnerID != "" || left.Marks.Ref != (plan.OwnerRef{}) {
		t.Errorf("got %+v", left)
	}
	live := b.live(d)
	if len(live.GetLabels()) != 1 || len(live.GetAnnotations()) != 1 || data(b, d)["key"] != "value" {
		t.Errorf("got %v", live)
	}
}
