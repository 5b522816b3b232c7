// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

// TestUninstallDeletesSharedTypesWithoutInstances has a definition with an instance, one without, and one of another operator.
func TestUninstallDeletesSharedTypesWithoutInstances(t *testing.T) {
	_, c := connect(t)
	// For the definitions of this test; an operator needs no such types.
	check.NoError(t, apiextensionsv1.AddToScheme(c.Scheme()))
	crd := func(plural, kind, label string) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: plural + ".uninstall.corbel.run", Labels: map[string]string{label: "true"}},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "uninstall.corbel.run", Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
				}}},
			},
		}
	}
	used, unused, others := crd("cups", "Cup", widgets().Name+"/shared"), crd("jars", "Jar", widgets().Name+"/shared"), crd("pots", "Pot", "other.example.com/shared")
	for _, object := range []client.Object{used, unused, others} {
		check.NoError(t, c.Create(t.Context(), object))
	}
	env.Until(t, "an instance", func() error {
		return c.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "uninstall.corbel.run/v1", "kind": "Cup", "metadata": map[string]any{"namespace": "default", "name": "tea"},
		}})
	})
	env.Until(t, "the other type", func() error {
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "uninstall.corbel.run/v1", "kind": "JarList"}}
		return c.List(t.Context(), list)
	})
	out := &bytes.Buffer{}
	err := widgets().deleteSharedTypes(t.Context(), c, out)
	if err == nil || !strings.Contains(err.Error(), "cups.uninstall.corbel.run: it has instances, such as default/tea: delete them first") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
	check.SameNamed(t, "output", "deleting CustomResourceDefinition jars.uninstall.corbel.run\n", out.String())
	env.Until(t, "the end of the definition", func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(unused), unused); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %v", err)
		}
		return nil
	})
	for _, object := range []client.Object{used, others} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil || object.GetDeletionTimestamp() != nil {
			t.Errorf("%s: %v", object.GetName(), err)
		}
	}
}
