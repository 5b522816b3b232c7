// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"testing/fstest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
)

// TestABreakingChangeInTheFolderCrdsOfAChartIsRefused runs three versions of an operator: the second has a chart whose
// definition breaks objects, and the third allows it.
func TestABreakingChangeInTheFolderCrdsOfAChartIsRefused(t *testing.T) {
	f := newFixture(t)
	chart := func(version, field, annotations string) *helm.Generator {
		t.Helper()
		g, err := helm.New(fstest.MapFS{
			"Chart.yaml": {Data: []byte("apiVersion: v2\nname: wheels\nversion: " + version + "\n")},
			"crds/wheels.yaml": {Data: []byte(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: wheels.crds.e2e.example.com, annotations: {%s}}
spec:
  group: crds.e2e.example.com
  scope: Namespaced
  names: {kind: Wheel, plural: wheels}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {size: {type: %s}}}}}
`, annotations, field))},
			"templates/settings.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {version: '{{ .Chart.Version }}'}\n")},
		}, ".", helm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	var definition apiextensionsv1.CustomResourceDefinition
	field := func() string {
		t.Helper()
		if err := f.Get(t.Context(), client.ObjectKey{Name: "wheels.crds.e2e.example.com"}, &definition); err != nil {
			t.Fatal(err)
		}
		return definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["size"].Type
	}
	first := f.startWith(t, chart("1.0.0", "integer", ""), nil)
	bundle := f.bundle(t, nil)
	f.ready(t, bundle)
	first.stop(t)

	second := f.startWith(t, chart("2.0.0", "string", ""), nil)
	f.inError(t, bundle, "CustomResourceDefinition wheels.crds.e2e.example.com", "version v1: .size: the type changes from integer to string (TypeChanged)")
	if _, reason, message := bundle.Status.GetState(); reason != v1alpha1.ReasonBreakingChange || field() != "integer" {
		t.Errorf("the field is of type %s, and the component says %s: %s", field(), reason, message)
	}
	second.stop(t)

	f.startWith(t, chart("2.0.1", "string", `e2e.corbel.run/allow-breaking-changes: "true"`), nil)
	f.ready(t, bundle)
	eventually(t, "the definition", func(context.Context) error {
		if got := field(); got != "string" {
			return fmt.Errorf("the field is of type %s", got)
		}
		return nil
	})
	if err := f.Delete(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	f.gone(t, bundle)
}
