// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

// installed returns the objects of the chart of an operator.
func installed(t *testing.T, o Options, values map[string]any) []client.Object {
	t.Helper()
	check.NoError(t, o.validate())
	files := check.Must(contents{Options: o}.files())(t)
	chart := fstest.MapFS{}
	for name, content := range files {
		if strings.HasPrefix(name, "deploy/") {
			chart[name] = &fstest.MapFile{Data: content}
		}
	}
	generator := check.Must(helm.New(chart, "deploy", helm.Options{KubeVersion: kubeVersion}))(t)
	ctx := manifests.Context{ReconcilerName: o.Group, Revision: 1}.In(t.Context())
	return check.Must(manifests.Generate(ctx, generator, "shop-system", "shop-operator", types.UnstructurableMap(values)))(t)
}

// protection returns those objects that protect the components.
func protection(t *testing.T, o Options, values map[string]any) (objects []client.Object) {
	t.Helper()
	for _, object := range installed(t, o, values) {
		if strings.HasPrefix(object.GetObjectKind().GroupVersionKind().Kind, "ValidatingAdmissionPolicy") {
			objects = append(objects, object)
		}
	}
	return objects
}

const gadgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.gadget.example.com}
spec:
  group: gadget.example.com
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets}
  versions:
  - {name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

// TestAComponentIsNotDeletedWithoutAConfirmation installs what the chart of an operator has for the protection, and
// no operator.
func TestAComponentIsNotDeletedWithoutAConfirmation(t *testing.T) {
	o := Options{Name: "gadget-operator", Kind: "Gadget", Group: "gadget.example.com", Form: FormGo}
	if objects := protection(t, o, nil); len(objects) > 0 {
		t.Errorf("components are protected by default: %v", objects)
	}
	e := env.New(t, env.Options{})
	c := check.Must(client.New(e.Config(), client.Options{}))(t)
	create := func(object client.Object) {
		t.Helper()
		check.NoError(t, c.Create(t.Context(), object))
	}
	var definition unstructured.Unstructured
	check.NoError(t, yaml.Unmarshal([]byte(gadgets), &definition.Object))
	create(&definition)
	gadget := func(namespace, name string) *unstructured.Unstructured {
		t.Helper()
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "gadget.example.com/v1alpha1", "kind": "Gadget", "metadata": map[string]any{"namespace": namespace, "name": name},
		}}
		env.Until(t, "create "+name, func() error { return c.Create(t.Context(), object) })
		return object
	}
	for _, name := range []string{"market", "closing", "shop-system"} {
		create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	main, second, closing := gadget("market", "main"), gadget("market", "second"), gadget("closing", "main")

	const want = "it is protected: to delete it, set the annotation gadget.example.com/confirm-deletion to its name, "
	refused := func(object client.Object, options ...client.DeleteOption) {
		t.Helper()
		if err := c.Delete(t.Context(), object, options...); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want+object.GetName()) {
			t.Errorf("the deletion of %s is answered by %v", object.GetName(), err)
		}
	}
	confirm := func(object client.Object, value string) {
		t.Helper()
		object.SetAnnotations(map[string]string{"gadget.example.com/confirm-deletion": value})
		check.NoError(t, c.Update(t.Context(), object))
	}
	protect := func(o Options, component client.Object) {
		t.Helper()
		for _, object := range protection(t, o, map[string]any{"deletionProtection": true}) {
			create(object)
		}
		env.Until(t, "the policy counts", func() error {
			if err := c.Delete(t.Context(), component, client.DryRunAll); err == nil {
				return errors.New("a deletion is accepted")
			}
			return nil
		})
		refused(component)
	}
	protect(o, main)
	refused(&definition)
	confirm(main, "second") // as kubectl annotate --all would
	refused(main)
	if err := c.DeleteAllOf(t.Context(), second, client.InNamespace("market")); !apierrors.IsForbidden(err) {
		t.Errorf("the deletion of all is answered by %v", err)
	}
	confirm(main, "main")
	if err := c.Delete(t.Context(), main); err != nil {
		t.Errorf("a deletion that is confirmed: %v", err)
	}

	// Nothing can be kept in a namespace that is being deleted. The server knows after a moment that it is.
	check.NoError(t, c.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "closing"}}))
	env.Until(t, "delete the component with its namespace", func() error { return c.Delete(t.Context(), closing) })

	// helm uninstall deletes the components before the policy: it goes on when they are confirmed, or the protection is off.
	for _, object := range protection(t, o, map[string]any{"deletionProtection": true}) {
		check.NoError(t, c.Delete(t.Context(), object))
	}
	env.Until(t, "delete a component without a policy", func() error { return c.Delete(t.Context(), second) })

	// The policy of an operator for one namespace is about this namespace.
	here, elsewhere := gadget("shop-system", "here"), gadget("market", "elsewhere")
	inNamespace := o
	inNamespace.Namespaced = true
	protect(inNamespace, here)
	if err := c.Delete(t.Context(), elsewhere); err != nil {
		t.Errorf("in another namespace: %v", err)
	}
}
