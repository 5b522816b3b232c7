// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/types"
)

// version is a generator of one version. It makes a config map of each component.
type version struct {
	number string
	// ready is a CEL expression that says when the config map is ready.
	ready string
}

func (v version) Digest() string { return v.number + v.ready }

func (v version) Generate(_ context.Context, _, name string, p types.Unstructurable) ([]client.Object, error) {
	values, _ := p.ToUnstructured()["values"].(map[string]any)
	text, _ := values["value"].(string)
	return []client.Object{&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{operatorName + "/" + v1alpha1.AnnotationReadyWhen: v.ready}},
		Data:       map[string]string{"version": v.number, "value": text},
	}}, nil
}

// The versions of the operators. The second one becomes ready when a user says so.
var (
	versionOne = version{number: "1", ready: "true"}
	versionTwo = version{number: "2", ready: "has(self.data.ready)"}
)

// atMost is the option with a maximum.
func atMost(number int32) *component.Rollout {
	return &component.Rollout{MaxUnavailable: intstr.FromInt32(number)}
}

// upgradedFleet are components in a namespace, and an operator that runs.
type upgradedFleet struct {
	*bed
	names []string
	stop  func()
}

// newUpgradedFleet makes components that are ready with the first version.
func newUpgradedFleet(t *testing.T, count int, spec widget.Spec) *upgradedFleet {
	t.Helper()
	f := &upgradedFleet{bed: newBed(t, versionOne, component.ReconcilerOptions{})}
	for i := range count {
		name := fmt.Sprintf("c%02d", i)
		f.names = append(f.names, name)
		w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}, Spec: spec}
		f.check(f.client.Create(t.Context(), w))
	}
	f.run(versionOne, component.ReconcilerOptions{})
	f.eventually("all are ready with version 1", func() bool { return f.count("1", v1alpha1.StateReady) == count })
	return f
}

// run replaces the operator by one of another version.
func (f *upgradedFleet) run(v manifests.Generator, options component.ReconcilerOptions) {
	f.Helper()
	if f.stop != nil {
		f.stop()
	}
	manager := f.confined(must(f.env.ConfigFor(f.user, "system:masters"))(f), newScheme(f.T))
	f.reconciler = component.NewReconciler[*widget.Widget](operatorName, v, options)
	f.check(f.reconciler.SetupWithManager(manager))
	f.stop = f.start(manager)
}

func (f *upgradedFleet) eventually(what string, reached func() bool) {
	f.Helper()
	for deadline := time.Now().Add(patience); !reached(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.Fatalf("waited for this: %s; the fleet:\n%s", what, f.describe())
		}
	}
}

// describe has a line for each component.
func (f *upgradedFleet) describe() string {
	var text strings.Builder
	for _, name := range f.names {
		w := f.widget(name)
		state, reason, message := w.Status.GetState()
		fmt.Fprintf(&text, "%s: version %s, %s %s: %s %v\n", name, f.versionOf(name), state, reason, message, results(w))
	}
	return text.String()
}

func (f *upgradedFleet) widget(name string) *widget.Widget {
	f.Helper()
	w := &widget.Widget{}
	f.check(client.IgnoreNotFound(f.client.Get(f.Context(), f.key(name), w)))
	return w
}

// versionOf returns the version that a component was written with, and whether it is ready.
func (f *upgradedFleet) versionOf(name string) string {
	f.Helper()
	object := &corev1.ConfigMap{}
	f.check(client.IgnoreNotFound(f.client.Get(f.Context(), f.key(name), object)))
	return object.Data["version"]
}

// with returns the components of a version.
func (f *upgradedFleet) with(version string) (names []string) {
	f.Helper()
	for _, name := range f.names {
		if f.versionOf(name) == version {
			names = append(names, name)
		}
	}
	return names
}

func (f *upgradedFleet) count(version string, state v1alpha1.State) (count int) {
	f.Helper()
	for _, name := range f.with(version) {
		if got, _, _ := f.widget(name).Status.GetState(); got == state {
			count++
		}
	}
	return count
}

// wantWith waits until exactly these components have a version, and then expects it to stay so until all
// components were reconciled once more.
func (f *upgradedFleet) wantWith(version string, want ...string) {
	f.Helper()
	f.eventually(fmt.Sprintf("%v have version %s", want, version), func() bool { return slices.Equal(f.with(version), want) })
	f.reconcileAll()
	if got := f.with(version); !slices.Equal(got, want) {
		f.Errorf("with version %s are %v, want %v:\n%s", version, got, want, f.describe())
	}
}

// reconcileAll asks for a reconcile of all components, and waits until it is done.
func (f *upgradedFleet) reconcileAll() {
	f.Helper()
	at := time.Now().UTC().Format(time.RFC3339Nano)
	for _, name := range f.names {
		f.set(name, vocabulary.AnnotationReconcileAt, at)
	}
	f.eventually("all are reconciled", func() bool {
		return !slices.ContainsFunc(f.names, func(name string) bool {
			w := f.widget(name)
			return w.Name != "" && w.Status.LastHandledReconcileAt != at
		})
	})
}

// set sets an annotation of a component; an empty value removes it.
func (f *upgradedFleet) set(name, suffix, value string) {
	f.Helper()
	text := "null"
	if value != "" {
		text = fmt.Sprintf("%q", value)
	}
	w := &widget.Widget{ObjectMeta: f.object(name)}
	f.check(client.IgnoreNotFound(f.client.Patch(f.Context(), w, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{"%s/%s":%s}}}`, operatorName, suffix, text)))))
}

// becomeReady lets the objects of components in version 2 become ready.
func (f *upgradedFleet) becomeReady(names ...string) {
	f.Helper()
	for _, name := range names {
		w := &corev1.ConfigMap{ObjectMeta: f.object(name)}
		f.check(f.client.Patch(f.Context(), w, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"ready":"true"}}`))))
	}
}

// edit changes the spec of a component.
func (f *upgradedFleet) edit(name, value string) {
	f.Helper()
	w := &widget.Widget{ObjectMeta: f.object(name)}
	f.check(f.client.Patch(f.Context(), w, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"values":{"value":%q}}}`, value))))
}

func (f *upgradedFleet) checkAllConditions() {
	f.Helper()
	for _, name := range f.names {
		if w := f.widget(name); w.Name != "" {
			conditionstest.Check(f, conditions.For(w, &w.Status.Conditions))
		}
	}
}

func messageOf(w *widget.Widget) string {
	_, _, message := w.Status.GetState()
	return message
}

func TestAnUpgradeGoesThroughAFleetStepByStep(t *testing.T) {
	f := newUpgradedFleet(t, 12, widget.Spec{})
	options := component.ReconcilerOptions{Revisions: component.RevisionOptions{Rollout: atMost(2)}}
	f.run(versionTwo, options)
	f.wantWith("2", "c00", "c01")

	// Those that wait are ready, say so, are repaired, and are written once.
	waits := f.widget("c05")
	if !waits.Status.IsReady() || waits.Status.Revision != 1 || messageOf(waits) != "1 of 1 dependent objects are ready; the next version waits for its turn" {
		t.Errorf("revision %d: %q", waits.Status.Revision, messageOf(waits))
	}
	edited := waits.DeepCopy()
	edited.Spec.Values = map[string]string{"edited": "1"}
	for turn, request := range map[string]component.PlanRequest[*widget.Widget]{
		"the next version waits for its turn": {Key: f.key("c05")}, "": {Key: f.key("c05"), Edited: edited}, // an edit does not wait
	} {
		plan, err := f.reconciler.Plan(t.Context(), request)
		if f.check(err); plan.Turn != turn || len(plan.Changes) == 0 {
			t.Errorf("plan with the turn %q and %d changes, want %q", plan.Turn, len(plan.Changes), turn)
		}
	}
	f.check(f.client.Patch(t.Context(), &corev1.ConfigMap{ObjectMeta: f.object("c05")}, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"value":"drifted"}}`))))
	f.eventually("drift is repaired", func() bool {
		object := &corev1.ConfigMap{}
		f.check(f.client.Get(t.Context(), f.key("c05"), object))
		return object.Data["value"] == "" && object.Data["version"] == "1"
	})
	f.resetRequests()
	f.becomeReady("c01")
	f.wantWith("2", "c00", "c01", "c02")
	for _, write := range f.writes() {
		if strings.HasPrefix(write, "update configmaps") && !strings.HasSuffix(write, "c02") || strings.HasPrefix(write, "create") {
			t.Errorf("write %s", write)
		}
	}

	// An edit of a user passes, and the next leader counts it.
	f.edit("c07", "edited")
	f.wantWith("2", "c00", "c01", "c02", "c07")
	f.becomeReady("c00")
	f.wantWith("2", "c00", "c01", "c02", "c07")
	f.run(versionTwo, options)
	f.wantWith("2", "c00", "c01", "c02", "c07")
	f.becomeReady("c02")
	f.wantWith("2", "c00", "c01", "c02", "c03", "c07")

	// A component that is deleted, and one that is suspended, take no place.
	f.check(f.client.Delete(t.Context(), &widget.Widget{ObjectMeta: f.object("c03")}))
	f.wantWith("2", "c00", "c01", "c02", "c04", "c07")
	f.set("c04", vocabulary.AnnotationSuspend, "true")
	f.eventually("c05 is updated", func() bool { return slices.Contains(f.with("2"), "c05") })
	f.set("c04", vocabulary.AnnotationSuspend, "")

	f.eventually("all are ready with version 2", func() bool {
		updated := f.with("2")
		for _, name := range updated {
			f.becomeReady(name)
		}
		// A status may say for a moment that a component is ready with the version before.
		return len(updated) == 11 && !slices.ContainsFunc(updated, func(name string) bool {
			w := f.widget(name)
			return !w.Status.IsReady() || strings.HasSuffix(messageOf(w), "waits for its turn")
		})
	})
	if w := f.widget("c11"); messageOf(w) != "1 of 1 dependent objects are ready" || w.Status.Revision != 2 {
		t.Errorf("revision %d: %q", w.Status.Revision, messageOf(w))
	}
	f.resetRequests()
	f.run(versionTwo, options)
	f.reconcileAll()
	for _, write := range f.writes() {
		if !strings.HasPrefix(write, "patch widgets/status") { // what the annotation asked for
			t.Errorf("write %s", write)
		}
	}
	f.checkAllConditions()
}

func TestMistakesInTheOptionRolloutAreReportedTogether(t *testing.T) {
	none := 0
	r := component.NewReconciler[*widget.Widget](operatorName, versionOne, component.ReconcilerOptions{
		Revisions: component.RevisionOptions{
			RevisionHistoryLimit: &none,
			Rollout: &component.Rollout{
				MaxUnavailable: intstr.FromString("110%"), Pause: -time.Second,
				Canaries: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}},
			},
		},
	})
	err := r.SetupWithManager(nil)
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{`option Rollout.MaxUnavailable "110%"`, "option Rollout.Pause -1s", "option Rollout.Canaries: ", "option Rollout needs a RevisionHistoryLimit"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing: %v", part, err)
		}
	}
	r = component.NewReconciler[*widget.Widget](operatorName, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{Revisions: component.RevisionOptions{Rollout: atMost(1)}})
	if err := r.SetupWithManager(nil); err == nil || !strings.Contains(err.Error(), "manifests.WithDigest") {
		t.Errorf("a generator without a digest: %v", err)
	}
}

// chartWithCRDs is a chart with a definition in the folder crds, and an instance of it. The definition has a column with the version.
func chartWithCRDs(t *testing.T, plural, version string) manifests.Generator {
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
	f := &sharedFleet{&upgradedFleet{bed: newBed(t, chartWithCRDs(t, plural, "1.0.0"), options), names: names}, plural}
	for _, name := range names {
		f.check(f.client.Create(t.Context(), &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name, Labels: map[string]string{"name": name}}}))
	}
	f.run(chartWithCRDs(t, plural, "1.0.0"), options)
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
	f.run(chartWithCRDs(t, "rivets", "1.1.0"), options)
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
