// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
)

// chartWithCRDs is a chart with a definition in the folder crds, and an instance of it. The definition has a column with the version.
func chartWithCRDs(t *testing.T, plural, version string, more map[string]string) manifests.Generator {
	t.Helper()
	kind := strings.ToUpper(plural[:1]) + plural[1:len(plural)-1]
	files := map[string]string{
		"Chart.yaml": fmt.Sprintf("apiVersion: v2\nname: parts\nversion: %s\n", version),
		"crds/parts.yaml": fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.shared.corbel.run}
spec:
  group: shared.corbel.run
  scope: Namespaced
  names: {plural: %[1]s, singular: %[2]s, kind: %[3]s, listKind: %[3]sList}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: v%[4]s, type: string, jsonPath: .metadata.name}]
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, plural, strings.ToLower(kind), kind, version),
		"templates/part.yaml": fmt.Sprintf("apiVersion: shared.corbel.run/v1\nkind: %s\nmetadata: {name: '{{ .Release.Name }}'}\nspec: {version: %q}\n", kind, version),
	}
	for name, content := range more {
		files[name] = content
	}
	fsys := fstest.MapFS{}
	for name, content := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return must(helm.New(fsys, ".", helm.Options{}))(t)
}

// sharedFleet are components of such a chart.
type sharedFleet struct {
	*upgradedFleet
	plural string
}

// newSharedFleet makes components, each with its name as the label name, and starts their operator.
func newSharedFleet(t *testing.T, plural string, options component.ReconcilerOptions, names ...string) *sharedFleet {
	t.Helper()
	f := &sharedFleet{&upgradedFleet{bed: newBed(t, chartWithCRDs(t, plural, "1.0.0", nil), options), names: names}, plural}
	for _, name := range names {
		f.check(f.client.Create(t.Context(), &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name, Labels: map[string]string{"name": name}}}))
	}
	f.run(chartWithCRDs(t, plural, "1.0.0", nil), options)
	return f
}

func (f *sharedFleet) isReady(name string) bool {
	w := f.widget(name)
	return w.Status.IsReady() && w.Status.AppliedGeneration == w.Generation
}

func (f *sharedFleet) allReady() bool {
	return !slices.ContainsFunc(f.names, func(name string) bool { return !f.isReady(name) })
}

// definition reads the shared definition; nil if there is none.
func (f *sharedFleet) definition() *unstructured.Unstructured {
	return f.read(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, client.ObjectKey{Name: f.plural + ".shared.corbel.run"})
}

// part reads the instance of a component; nil if there is none.
func (f *sharedFleet) part(name string) *unstructured.Unstructured {
	kind := strings.ToUpper(f.plural[:1]) + f.plural[1:len(f.plural)-1]
	return f.read(schema.GroupVersionKind{Group: "shared.corbel.run", Version: "v1", Kind: kind}, f.key(name))
}

func (f *sharedFleet) read(gvk schema.GroupVersionKind, key client.ObjectKey) *unstructured.Unstructured {
	f.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(gvk)
	if err := f.client.Get(f.Context(), key, live); err != nil {
		return nil
	}
	return live
}

// version returns the version of the instance of a component; empty if there is none.
func (f *sharedFleet) version(name string) string {
	part := f.part(name)
	if part == nil {
		return ""
	}
	version, _, _ := unstructured.NestedString(part.Object, "spec", "version")
	return version
}

// column returns the version that the definition is of.
func (f *sharedFleet) column() string {
	if f.definition() == nil {
		return ""
	}
	versions, _, _ := unstructured.NestedSlice(f.definition().Object, "spec", "versions")
	columns, _ := versions[0].(map[string]any)["additionalPrinterColumns"].([]any)
	return columns[0].(map[string]any)["name"].(string)
}

// writesOfTheDefinition returns the verbs of the writes that the operator has sent about it.
func (f *sharedFleet) writesOfTheDefinition() (verbs []string) {
	for _, write := range f.writes() {
		if verb, name, _ := strings.Cut(write, " "); name == "customresourcedefinitions "+f.plural+".shared.corbel.run" {
			verbs = append(verbs, verb)
		}
	}
	return verbs
}

// TestManyComponentsOfAChartWithCRDs installs a chart with a definition more than once, upgrades it, deletes the definition by hand, and
// deletes the components.
func TestManyComponentsOfAChartWithCRDs(t *testing.T) {
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("c%02d", i))
	}
	f := newSharedFleet(t, "bolts", component.ReconcilerOptions{}, names...)
	f.eventually("all are ready", f.allReady)
	if labels := f.definition().GetLabels(); labels[operatorName+"/shared"] != "true" || labels[operatorName+"/owner-id"] != "" {
		t.Errorf("labels %v", labels)
	}
	if got := f.writesOfTheDefinition(); !slices.Equal(got, []string{"create"}) {
		t.Errorf("for the installation: %v", got)
	}

	f.run(chartWithCRDs(t, "bolts", "1.1.0", nil), component.ReconcilerOptions{})
	f.eventually("all have the next version", func() bool {
		return f.allReady() && !slices.ContainsFunc(names, func(name string) bool { return f.version(name) != "1.1.0" })
	})
	if got := f.writesOfTheDefinition(); !slices.Equal(got, []string{"create", "update"}) || f.column() != "v1.1.0" {
		t.Errorf("with the upgrade: %v, column %s", got, f.column())
	}

	before := f.definition().GetUID()
	f.check(f.client.Delete(t.Context(), f.definition()))
	f.eventually("the definition and all instances are there again", func() bool {
		live := f.definition()
		return live != nil && live.GetUID() != before && f.allReady() && !slices.ContainsFunc(names, func(name string) bool { return f.part(name) == nil })
	})

	for _, name := range names[1:] {
		f.check(f.client.Delete(t.Context(), f.widget(name)))
	}
	f.eventually("they are gone", func() bool {
		return !slices.ContainsFunc(names[1:], func(name string) bool { return f.widget(name).Name != "" })
	})
	if f.definition() == nil || f.part(names[0]) == nil || f.part(names[1]) != nil {
		t.Error("the deletion of others has touched what is left, or has left something")
	}
	f.check(f.client.Delete(t.Context(), f.widget(names[0])))
	f.eventually("all are gone", func() bool { return f.widget(names[0]).Name == "" })
	if live := f.definition(); live == nil || live.GetDeletionTimestamp() != nil {
		t.Error("the deletion of the last component has deleted the definition")
	}
}

// TestASharedTypeIsUpgradedWithoutApproval upgrades the operator of a component that waits for an approval: what it keeps is stored, but
// not the definition. After that the component goes back to its first revision, which downgrades no definition.
func TestASharedTypeIsUpgradedWithoutApproval(t *testing.T) {
	options := component.ReconcilerOptions{Revisions: component.RevisionOptions{RequireApproval: true}}
	f := newSharedFleet(t, "rivets", options, "main")
	approve := func() {
		t.Helper()
		f.eventually("a plan waits", func() bool { return f.widget("main").Status.Approval != nil })
		f.annotate(map[string]string{operatorName + "/" + vocabulary.AnnotationApprove: f.widget("main").Status.Approval.Hash})
	}
	if !f.isReady("main") {
		f.eventually("it is ready, or waits", func() bool { return f.isReady("main") || f.widget("main").Status.Approval != nil })
	}
	if f.widget("main").Status.Approval != nil {
		approve()
	}
	f.eventually("it is ready", f.allReady)
	version := func() string { return f.version("main") }
	f.run(chartWithCRDs(t, "rivets", "1.1.0", nil), options)
	f.eventually("the definition is upgraded, and the component waits", func() bool {
		return f.column() == "v1.1.0" && f.widget("main").Status.Approval != nil && version() == "1.0.0"
	})
	approve()
	f.eventually("the component has the next version", func() bool { return f.allReady() && version() == "1.1.0" })
	f.annotate(map[string]string{operatorName + "/" + vocabulary.AnnotationRollbackTo: "1"})
	f.eventually("the component has the first version again", func() bool { return version() == "1.0.0" })
	if got := f.writesOfTheDefinition(); !slices.Equal(got, []string{"create", "update"}) || f.column() != "v1.1.0" {
		t.Errorf("writes %v, column %s", got, f.column())
	}
}

// TestARefusedSharedTypeLeavesAWayBack upgrades an operator to a chart with a breaking change of the definition. The component is rolled
// back to the revision before.
func TestARefusedSharedTypeLeavesAWayBack(t *testing.T) {
	f := newSharedFleet(t, "clamps", component.ReconcilerOptions{}, "main")
	f.eventually("it is ready", f.allReady)
	breaking := map[string]string{"crds/parts.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clamps.shared.corbel.run}
spec:
  group: shared.corbel.run
  scope: Namespaced
  names: {plural: clamps, singular: clamp, kind: Clamp, listKind: ClampList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`}
	f.run(chartWithCRDs(t, "clamps", "2.0.0", breaking), component.ReconcilerOptions{})
	f.eventually("the change is refused", func() bool {
		_, reason, _ := f.widget("main").Status.GetState()
		return reason == vocabulary.ReasonBreakingChange
	})
	f.annotate(map[string]string{operatorName + "/" + vocabulary.AnnotationRollbackTo: "1"})
	f.eventually("the component is ready with its first revision", f.allReady)
	if version, _, _ := unstructured.NestedString(f.part("main").Object, "spec", "version"); version != "1.0.0" || f.column() != "v1.0.0" {
		t.Errorf("version %s, column %s", version, f.column())
	}
}
