// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/componenttest"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
)

// operator is the operator of the stories. The objects that are retained are named as in componenttest.
func (c *cluster) operator(retained ...string) componenttest.Operator[*widget.Widget] {
	return componenttest.Operator[*widget.Widget]{
		Config: c.config, Scheme: c.client.Scheme(), Retained: append(retained, c.given...), Timeout: patience,
		SetUp: func(manager ctrl.Manager) error {
			return component.NewReconciler[*widget.Widget](group, generator, component.ReconcilerOptions{
				Operator:  component.OperatorOptions{OperatorNamespace: &c.home},
				Revisions: component.RevisionOptions{MinReadySeconds: new(0)}, // the pods of the stories do not crash
			}).SetupWithManager(manager)
		},
	}
}

// generator renders the values of a component, which are manifests.
var generator = manifests.GeneratorFunc(func(_ context.Context, _, _ string, parameters types.Unstructurable) (objects []client.Object, err error) {
	values, _, err := unstructured.NestedStringMap(parameters.ToUnstructured(), "values")
	for _, name := range slices.Sorted(maps.Keys(values)) {
		decoded, err := document.Decode(name, []byte(values[name]))
		if err != nil {
			return nil, err
		}
		for _, object := range decoded {
			objects = append(objects, object)
		}
	}
	return objects, err
})

// content is the content of a component: manifests by any name.
type content map[string]string

// component returns a component with the content.
func (m content) component() *widget.Widget {
	return &widget.Widget{ObjectMeta: metav1.ObjectMeta{Name: "main"}, Spec: widget.Spec{Values: m}}
}

// with is an edit of a component that adds the content, and removes manifests that are empty.
func (m content) with(w *widget.Widget) {
	maps.Copy(w.Spec.Values, m)
	maps.DeleteFunc(w.Spec.Values, func(_, manifest string) bool { return manifest == "" })
}

// manifest returns a manifest. The annotations are pairs, without the prefix of the keys.
func manifest(apiVersion, kind, name, rest string, annotations ...string) string {
	var pairs []string
	for pair := range slices.Chunk(annotations, 2) {
		pairs = append(pairs, fmt.Sprintf("%s/%s: %q", group, pair[0], pair[1]))
	}
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s, annotations: {%s}}\n%s\n", apiVersion, kind, name, strings.Join(pairs, ", "), rest)
}

// configMap returns the manifest of a ConfigMap with a version.
func configMap(name, version string, annotations ...string) string {
	return manifest("v1", "ConfigMap", name, fmt.Sprintf("data: {version: %q}", version), annotations...)
}

// job returns the manifest of a Job, which runs once.
func job(name string, succeeds bool, annotations ...string) string {
	program, code := "true", "0" // podsim runs no programs
	if !succeeds {
		program, code = "false", "1"
	}
	return manifest("batch/v1", "Job", name, fmt.Sprintf("spec: {backoffLimit: 0, template: {metadata: {annotations: {podsim.corbel.run/exit-code: %q}}, "+
		"spec: {restartPolicy: Never, containers: [{name: main, image: %q, command: [%q]}]}}}", code, *image, program), append(annotations, "update-policy", "recreate")...)
}

// scene is an installed component, as a story sees it.
type scene struct {
	*componenttest.Installed[*widget.Widget]
	t testing.TB
}

// install installs the content with an operator.
func install(t testing.TB, o componenttest.Operator[*widget.Widget], w *widget.Widget) scene {
	return scene{o.Install(t, w), t}
}

// propose changes the component as an edit says, and does not wait until it is ready.
func (s scene) propose(edit func(*widget.Widget)) {
	until(s.t, "the component is changed", func() error {
		if err := s.Client.Get(s.t.Context(), client.ObjectKeyFromObject(s.Component), s.Component); err != nil {
			return err
		}
		edit(s.Component)
		return s.Client.Update(s.t.Context(), s.Component)
	})
}

// awaitReason waits until the component has, for its present generation, a reason and all parts of a message.
func (s scene) awaitReason(reason string, parts ...string) {
	until(s.t, "the component has the reason "+reason, func() error {
		if err := s.Client.Get(s.t.Context(), client.ObjectKeyFromObject(s.Component), s.Component); err != nil {
			return err
		}
		ready := apimeta.FindStatusCondition(s.Component.Status.Conditions, v1alpha1.ConditionReady)
		lacks := func(part string) bool { return !strings.Contains(ready.Message, part) }
		if ready == nil || ready.Reason != reason || ready.ObservedGeneration != s.Component.Generation || slices.ContainsFunc(parts, lacks) {
			return fmt.Errorf("want %s with %q, got %+v", reason, parts, ready)
		}
		return nil
	})
	conditionstest.Check(s.t, conditions.For(s.Component, &s.Component.Status.Conditions))
}

// get reads a ConfigMap in the namespace of the component; without one it has no uid.
func (s scene) get(name string) *corev1.ConfigMap {
	object := &corev1.ConfigMap{}
	check.NoError(s.t, client.IgnoreNotFound(s.Client.Get(s.t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: name}, object)))
	return object
}

// has expects a version in a ConfigMap; an empty version means that there is no ConfigMap.
func (s scene) has(name, version string) {
	s.t.Helper()
	s.hasField(name, "version", version)
}

// hasField expects a field in the data of a ConfigMap. The operator may notice a change of another client a moment later.
func (s scene) hasField(name, key, value string) {
	s.t.Helper()
	until(s.t, fmt.Sprintf("ConfigMap %s has the %s %q", name, key, value), func() error {
		if got := s.get(name).Data[key]; got != value {
			return fmt.Errorf("it has %q", got)
		}
		return nil
	})
}

// interfere changes the data of a ConfigMap as another client.
func (s scene) interfere(name, key, value string) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{%q:%q}}`, key, value))
	check.NoError(s.t, s.Client.Patch(s.t.Context(), object, patch, client.FieldOwner("kubectl-edit")))
}
