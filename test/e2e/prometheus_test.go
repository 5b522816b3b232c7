// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/helmrelease"
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
// namespaces, workloads of all kinds. Meanwhile they belong to a Helm release, and are taken over from it.
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
	f.adoptsReleases = true
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

	bundle = f.moveThroughHelm(t, bundle, selection(all))
	if moved := f.owned(t, f.ownerOf()); len(moved) != len(back) {
		t.Errorf("%d objects are owned, want %d", len(moved), len(back))
	} else {
		sameObjects(t, back, moved)
	}

	if err := f.Delete(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	f.gone(t, bundle)
	if left := f.owned(t, f.ownerOf()); len(left) > 0 {
		t.Errorf("objects are left over: %v", names(left))
	}
}

// moveThroughHelm deletes a component without its objects, makes them those of a Helm release, and creates a component that takes
// the release over by one write for each object, which changes nothing of it.
func (f *fixture) moveThroughHelm(t *testing.T, bundle *Bundle, generator manifests.Generator) *Bundle {
	t.Helper()
	values := bundle.Spec.ToUnstructured()
	rendered, err := manifests.Generate(manifests.WithReconcilerName(t.Context(), reconcilerName), generator, f.namespace, bundle.Name, &bundle.Spec)
	if err != nil {
		t.Fatal(err)
	}
	detach := fmt.Sprintf(`{"metadata":{"annotations":{"%s/management-policy":"detach-on-delete"}}}`, reconcilerName)
	if err := errors.Join(f.Patch(t.Context(), bundle, client.RawPatch(types.MergePatchType, []byte(detach))), f.Delete(t.Context(), bundle)); err != nil {
		t.Fatal(err)
	}
	f.gone(t, bundle)
	release := helmrelease.Release{
		Reference: helmrelease.Reference{Namespace: f.namespace, Name: bundle.Name, Revision: 4}, Status: helmrelease.StatusDeployed, Chart: "kube-prometheus", DeployedAt: time.Now(),
	}
	mark := fmt.Sprintf(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":"Helm"},"annotations":{"meta.helm.sh/release-name":%q,"meta.helm.sh/release-namespace":%q}}}`, release.Name, release.Namespace)
	var objects []*unstructured.Unstructured
	for _, object := range rendered {
		u := object.(*unstructured.Unstructured)
		if !u.IsList() {
			objects = append(objects, u)
			continue
		}
		items, err := u.ToList()
		if err != nil {
			t.Fatal(err)
		}
		for i := range items.Items {
			objects = append(objects, &items.Items[i])
		}
	}
	for _, u := range objects {
		if u.GetKind() == "CustomResourceDefinition" || u.GetKind() == "Namespace" {
			continue // as in a chart
		}
		release.Objects = append(release.Objects, u.DeepCopy())
		if err := f.Patch(t.Context(), u, client.RawPatch(types.MergePatchType, []byte(mark))); err != nil {
			t.Fatal(err)
		}
	}
	record, err := release.Record("", func(*unstructured.Unstructured) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	adopting := &Bundle{ObjectMeta: metav1.ObjectMeta{
		Namespace: f.namespace, Name: bundle.Name, Annotations: map[string]string{reconcilerName + "/adopt-helm-release": release.String()},
	}, Spec: BundleSpec{Values: values}}
	seen := f.observe(t, release.Objects, func() {
		if err := f.Create(t.Context(), adopting); err != nil {
			t.Fatal(err)
		}
		f.ready(t, adopting)
	})
	if seen.writes != seen.objects {
		t.Errorf("%d writes to %d objects", seen.writes, seen.objects)
	}
	return adopting
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
