// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// crashing is a generator of a Deployment without a probe. Its pod ends a second after each start if the values say so.
func crashing(_ context.Context, _, _ string, parameters types.Unstructurable) ([]client.Object, error) {
	annotations := map[string]any{}
	if parameters.ToUnstructured()["crash"] == "true" {
		annotations = map[string]any{"podsim.corbel.run/run-for": "1s", "podsim.corbel.run/exit-code": "3"}
	}
	labels := map[string]any{"app": "api"}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{
		"selector": map[string]any{"matchLabels": labels}, "template": map[string]any{
			"metadata": map[string]any{"labels": labels, "annotations": annotations}, "spec": map[string]any{"containers": []any{map[string]any{"name": "api", "image": "api"}}},
		}}}}
	object.SetName("api")
	return []client.Object{object}, nil
}

func TestARevisionThatCrashesIsNeverReadyAndGoesBackByItself(t *testing.T) {
	f := newFixture(t)
	f.startWith(t, manifests.GeneratorFunc(crashing), nil)
	bundle := &Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "main"}, Spec: BundleSpec{
		TimeoutSpec: component.TimeoutSpec{Timeout: &types.Duration{Duration: 10 * time.Second}}, RollbackSpec: component.RollbackSpec{RollbackOnFailure: new(true)},
	}}
	if err := f.Create(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	f.ready(t, bundle)
	f.update(t, bundle, map[string]string{"crash": "true"})
	eventually(t, "the rollback", func(ctx context.Context) error {
		if err := f.Get(ctx, client.ObjectKeyFromObject(bundle), bundle); err != nil {
			return err
		}
		state, reason, message := bundle.Status.GetState()
		if reason != v1alpha1.ReasonRolledBack {
			return fmt.Errorf("%s: %s", state, message)
		}
		return nil
	})
	if got, want := historyOf(bundle), []string{"3 Ready to 1", "2 Failed", "1 Ready"}; !slices.Equal(got, want) {
		t.Errorf("history %v", got)
	}
}
