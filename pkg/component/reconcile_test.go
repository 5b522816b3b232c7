// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
)

type generatorFunc = manifests.GeneratorFunc

var someInventory = v1alpha1.Inventory{Format: 1, Items: []v1alpha1.InventoryItem{{Kind: "ConfigMap", Version: "v1", Name: "a"}}}

func TestCreateOrUpdateAsksTheEngine(t *testing.T) {
	engine := &fakeEngine{record: true, outcome: reconciler.Outcome{Inventory: someInventory, Settled: 1, Total: 1, ManifestDigest: "m1", Steps: map[string]int{"create": 1}}}
	h, _ := testHandler(t, engine)
	var parameters map[string]any
	var where string
	h.revisions.Renderer.Generator = generatorFunc(func(_ context.Context, namespace, name string, p types.Unstructurable) ([]client.Object, error) {
		where, parameters = namespace+"/"+name, p.ToUnstructured()
		return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}, nil
	})
	obj := withSpec(widgetSpec{Size: 3, PlacementSpec: PlacementSpec{Namespace: "other", Name: "renamed"}, ReapplySpec: ReapplySpec{duration("1h")},
		PolicySpec: PolicySpec{DeletePolicy: v1alpha1.DeletePolicyOrphan}})
	var committed Status
	res, err := h.applier.createOrUpdate(t.Context(), obj, func(context.Context) error { committed = *obj.GetStatus(); return nil })
	if res != result.Success || err != nil {
		t.Fatalf("result %v, error %v", res, err)
	}
	if where != "other/renamed" || parameters["size"] != int64(3) {
		t.Errorf("the generator got %s and %v", where, parameters)
	}
	request := engine.applied[0]
	if request.Owner != (reconciler.Owner{Group: "test.corbel.run", Kind: "Widget", Namespace: "shop", Name: "main", UID: "uid-1"}) ||
		request.Namespace != "other" || len(request.Objects) != 1 || request.Policies.ReapplyInterval != time.Hour || request.Policies.Delete != v1alpha1.DeletePolicyOrphan || request.ComponentDigest == "" {
		t.Errorf("the engine got %+v", request)
	}
	if by := committed.Inventory.Operator; by == nil || by.Namespace != "default" || len(by.Key) != 8 {
		t.Errorf("the record names the operator %+v", by)
	}
	committed.Inventory.Operator = nil
	if diff := cmp.Diff(someInventory, committed.Inventory); diff != "" || committed.Revision != 1 {
		t.Errorf("committed before acting, revision %d (-want +got):\n%s", committed.Revision, diff)
	}
	status := obj.GetStatus()
	if status.Progress != "1/1" || status.AppliedGeneration != 1 || status.ProcessingSince != nil || status.LastAppliedAt == nil ||
		!strings.HasPrefix(status.ProcessingDigest, request.ComponentDigest+"/m1/") {
		t.Errorf("status %+v", status)
	}
}

func TestRefusedRecordChangesNothing(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{record: true, outcome: reconciler.Outcome{Inventory: someInventory}})
	obj := newWidget()
	refused := errors.New("refused")
	_, err := h.applier.createOrUpdate(t.Context(), obj, func(context.Context) error { return refused })
	if !errors.Is(err, refused) || len(obj.GetStatus().Inventory.Items) != 0 {
		t.Errorf("error %v, inventory %v", err, obj.GetStatus().Inventory)
	}
}

// reconcileOnce runs CreateOrUpdate or Delete and report, as reconcile does.
func reconcileOnce(t *testing.T, h *handler, obj *widget) result.Verdict {
	t.Helper()
	outcome := session.Outcome{Phase: session.PhaseApply}
	if obj.DeletionTimestamp.IsZero() {
		outcome.Result, outcome.Err = h.applier.createOrUpdate(t.Context(), obj, noCommit)
	} else {
		outcome.Phase = session.PhaseDelete
		outcome.Result, outcome.Err = h.deletion.delete(t.Context(), obj, noCommit)
	}
	verdict := h.report(t.Context(), obj, outcome)
	conditionstest.Check(t, conditionsOf(obj))
	return verdict
}

func TestTimeoutCountsFromTheLastChange(t *testing.T) {
	engine := &fakeEngine{outcome: reconciler.Outcome{Waiting: []report.Wait{waitFor("/ConfigMap shop/a", "NotReady", "not yet")}, Total: 1, ManifestDigest: "m1"}}
	h, _ := testHandler(t, engine)
	start := h.now()
	now := start
	h.now = func() time.Time { return now }
	obj := withSpec(widgetSpec{TimeoutSpec: TimeoutSpec{duration("1m")}})
	expect := func(at time.Duration, state v1alpha1.State, reason string) {
		t.Helper()
		now = start.Add(at)
		reconcileOnce(t, h, obj)
		if gotState, gotReason, message := obj.GetStatus().GetState(); gotState != state || gotReason != reason {
			t.Errorf("at %s: %s, %s: %s", at, gotState, gotReason, message)
		}
	}
	expect(0, v1alpha1.StateProcessing, vocabulary.ReasonProcessing)
	expect(59*time.Second, v1alpha1.StateProcessing, vocabulary.ReasonProcessing)
	expect(60*time.Second, v1alpha1.StateError, vocabulary.ReasonTimeout)
	if engine.applied[2].TimedOut {
		t.Error("the engine is told of the timeout before a failure is reported")
	}
	expect(61*time.Second, v1alpha1.StateError, vocabulary.ReasonTimeout)
	if !engine.applied[3].TimedOut {
		t.Error("the engine is not told of the timeout")
	}
	engine.outcome.ManifestDigest = "m2"
	expect(70*time.Second, v1alpha1.StateProcessing, vocabulary.ReasonProcessing)
	expect(130*time.Second, v1alpha1.StateError, vocabulary.ReasonTimeout)
	obj.Generation++
	expect(140*time.Second, v1alpha1.StateProcessing, vocabulary.ReasonProcessing)
	if last := engine.applied[len(engine.applied)-1]; last.TimedOut {
		t.Error("the timeout of the former generation counts for the next one")
	}
	expect(200*time.Second, v1alpha1.StateError, vocabulary.ReasonTimeout)
	waiting := engine.outcome.Waiting
	engine.outcome.Waiting, engine.outcome.Settled = nil, 1
	expect(210*time.Second, v1alpha1.StateReady, vocabulary.ReasonReady)
	engine.outcome.Waiting, engine.outcome.Settled = waiting, 0
	expect(400*time.Second, v1alpha1.StateProcessing, vocabulary.ReasonProcessing)
	expect(460*time.Second, v1alpha1.StateError, vocabulary.ReasonTimeout)
}

func TestMistakesOfTheComponent(t *testing.T) {
	tests := []struct {
		name      string
		component *widget
		message   string
	}{
		{"an unknown policy", withSpec(widgetSpec{PolicySpec: PolicySpec{DeletePolicy: "Maybe"}}), `Widget shop/main: DeletePolicy "Maybe": must be one of [Delete Orphan OrphanOnApply OrphanOnDelete]`},
		{"a kubeconfig without a name", withSpec(widgetSpec{ClientSpec: ClientSpec{&KubeConfigSpec{}}}), "Widget shop/main: spec.kubeConfig.secretRef: the name of the Secret is missing"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			engine := &fakeEngine{}
			h, _ := testHandler(t, engine)
			verdict := reconcileOnce(t, h, test.component)
			state, reason, message := test.component.GetStatus().GetState()
			if state != v1alpha1.StateError || reason != vocabulary.ReasonSpecInvalid || message != test.message || verdict.Outcome != result.Stalled || len(engine.applied) != 0 {
				t.Errorf("%s, %s: %s; %+v", state, reason, message, verdict)
			}
		})
	}
}
