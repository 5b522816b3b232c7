// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/manifests"
	corbeltypes "github.com/corbel-run/corbel/pkg/types"
)

// prometheusManifests is where the manifests of kube-prometheus lie, beside
// the repository.
const prometheusManifests = "../../../shared/testdata/kube-prometheus/manifests"

// TestKubePrometheus takes a large set of real manifests through the life of a
// component: definitions and their instances, lists, rights in several
// namespaces, workloads of all kinds.
func TestKubePrometheus(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(prometheusManifests); err != nil {
		t.Skipf("the manifests of kube-prometheus are not beside the repository: %v", err)
	}
	all, err := manifests.FromFS(os.DirFS(prometheusManifests), ".")
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t)
	f.startWith(t, selection(all), nil)

	bundle := f.bundle(t, map[string]string{"drop": "nothing"})
	f.ready(t, bundle)
	conditionstest.Check(t, conditions.For(bundle, &bundle.Status.Conditions))
	whole := f.owned(t, f.ownerOf())
	if got, want := len(whole), len(bundle.Status.Inventory.Items); got != want || got < 100 {
		t.Errorf("%d objects are owned, %d are recorded, want the same number, and at least 100", got, want)
	}

	f.update(t, bundle, map[string]string{"drop": "a third"})
	f.ready(t, bundle)
	rest := f.owned(t, f.ownerOf())
	if got, want := len(rest), len(bundle.Status.Inventory.Items); got != want || got > len(whole)*3/4 {
		t.Errorf("after the upgrade %d objects are owned, %d are recorded, want the same number, and less than 3/4 of %d", got, want, len(whole))
	}
	sameObjects(t, whole, rest)

	f.update(t, bundle, map[string]string{"drop": "nothing again"})
	f.ready(t, bundle)
	back := f.owned(t, f.ownerOf())
	if diff := cmp.Diff(names(whole), names(back)); diff != "" {
		t.Errorf("what came back (-want +got):\n%s", diff)
	}
	sameObjects(t, rest, back)

	if err := f.Delete(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	f.gone(t, bundle)
	if left := f.owned(t, f.ownerOf()); len(left) > 0 {
		t.Errorf("objects are left over: %v", names(left))
	}
}

// sameObjects expects the objects that are in both to be the very same.
func sameObjects(t *testing.T, before, after map[string]types.UID) {
	t.Helper()
	for name, uid := range before {
		if now, there := after[name]; there && now != uid {
			t.Errorf("%s was created a second time", name)
		}
	}
}

// selection is a generator without the APIService, the server of which cannot run on
// simulated nodes, and without what the parameters drop: every third object
// that nothing else needs.
func selection(all manifests.Generator) manifests.Generator {
	return manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, parameters corbeltypes.Unstructurable) ([]client.Object, error) {
		objects, err := all.Generate(ctx, namespace, name, parameters)
		if err != nil {
			return nil, err
		}
		var kept []client.Object
		for i, object := range objects {
			kind := object.GetObjectKind().GroupVersionKind().Kind
			if kind == "APIService" {
				continue
			}
			needed := kind == "Namespace" || kind == "CustomResourceDefinition"
			if parameters.ToUnstructured()["drop"] == "a third" && i%3 == 0 && !needed {
				continue
			}
			kept = append(kept, object)
		}
		return kept, nil
	})
}
