// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"os"
	"testing"
	"testing/fstest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{})) }

// The API server keeps a null in the field values, and drops that of a typed field, which gets its default.
func TestNullInValuesRemovesADefaultOfTheChart(t *testing.T) {
	c := check.Must(client.New(env.Shared(t).Config(), client.Options{}))(t)
	check.NoError(t, apiextensionsv1.AddToScheme(c.Scheme()))
	object := func(properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
	}
	free := object(nil)
	free.XPreserveUnknownFields = new(true)
	schema := object(map[string]apiextensionsv1.JSONSchemaProps{"spec": object(map[string]apiextensionsv1.JSONSchemaProps{
		"values": free, "size": {Type: "integer", Default: &apiextensionsv1.JSON{Raw: []byte("1")}}, "tag": {Type: "string"},
	})})
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "shops.nulls.example.com"}, Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "nulls.example.com", Scope: apiextensionsv1.NamespaceScoped,
		Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "shops", Kind: "Shop"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema}}},
	}}
	check.NoError(t, c.Create(t.Context(), definition))
	shop := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "nulls.example.com/v1", "kind": "Shop", "metadata": map[string]any{"namespace": "default", "name": "sample"},
		"spec": map[string]any{"size": nil, "tag": nil, "values": map[string]any{"greeting": nil, "image": map[string]any{"tag": nil}}},
	}}
	env.Until(t, "the type is served", func() error { return c.Create(t.Context(), shop) })
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(shop.GroupVersionKind())
	check.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(shop), stored))
	parameters := component.MergedParameters(stored.Object["spec"], "values")
	want := map[string]any{"size": int64(1), "greeting": nil, "image": map[string]any{"tag": nil}}
	check.Equal(t, want, parameters)
	generator, err := helm.New(fstest.MapFS{
		"Chart.yaml":       {Data: []byte(chartHead)},
		"values.yaml":      {Data: []byte("greeting: hello\nimage: {tag: a, name: b}\nsize: 2\n")},
		"templates/a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {values: {{ toJson .Values | quote }}}\n")},
	}, ".", helm.Options{})
	check.NoError(t, err)
	ctx := manifests.Context{ReconcilerName: "nulls.example.com", Revision: 1}.In(t.Context())
	objects, err := manifests.Generate(ctx, generator, "default", "sample", types.UnstructurableMap(parameters))
	if err != nil || len(objects) != 1 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	if text, _, _ := unstructured.NestedString(objects[0].(*unstructured.Unstructured).Object, "data", "values"); text != `{"image":{"name":"b"},"size":1}` {
		t.Errorf("the chart gets %s", text)
	}
}
