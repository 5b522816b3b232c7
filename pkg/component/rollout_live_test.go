// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/manifests"
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
	versionOne    = version{number: "1", ready: "true"}
	versionTwo    = version{number: "2", ready: "has(self.data.ready)"}
	versionBroken = version{number: "broken", ready: "false"}
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

func TestABrokenVersionTouchesAsFewComponentsAsAllowed(t *testing.T) {
	f := newUpgradedFleet(t, 12, widget.Spec{TimeoutSpec: component.TimeoutSpec{Timeout: &types.Duration{Duration: time.Second}}})
	options := component.ReconcilerOptions{Revisions: component.RevisionOptions{Rollout: atMost(2)}}
	f.resetRequests()
	f.run(versionBroken, options)
	stopped := func(name string) string {
		condition := conditions.Get(conditions.For(f.widget(name), &f.widget(name).Status.Conditions), v1alpha1.ConditionRolloutStopped)
		if condition == nil {
			return ""
		}
		return condition.Message
	}
	f.eventually("both have the condition", func() bool { return stopped("c00") != "" && stopped("c01") != "" })
	f.wantWith("broken", "c00", "c01")
	for _, write := range f.writes() {
		if strings.HasPrefix(write, "update configmaps") && !strings.HasSuffix(write, " c00") && !strings.HasSuffix(write, " c01") {
			t.Errorf("write %s", write)
		}
	}
	for _, part := range []string{
		"the roll-out of the new version has stopped, and 10 components are not updated: 2 components failed, and at most 2 may be unavailable",
		f.namespace + "/c00: not ready after 1s", f.namespace + "/c01: ", operatorName + "/rollout: ignore",
	} {
		if !strings.Contains(stopped("c01"), part) {
			t.Errorf("the condition lacks %q: %s", part, stopped("c01"))
		}
	}
	f.checkAllConditions()
	wantOneEvent := func() {
		t.Helper()
		if got := f.eventsOf("RolloutStopped"); len(got) != 1 {
			t.Errorf("events: %q", got)
		}
	}
	f.eventually("an event", func() bool { return len(f.eventsOf("RolloutStopped")) > 0 })
	wantOneEvent()
	f.run(versionBroken, options)
	f.wantWith("broken", "c00", "c01")
	wantOneEvent()

	// What is ignored gives its place to the next one.
	f.set("c00", vocabulary.AnnotationRollout, "ignore")
	f.wantWith("broken", "c00", "c01", "c02")
	f.eventually("the condition moves on", func() bool { return stopped("c00") == "" && stopped("c01") != "" && stopped("c02") != "" })

	// The version before is rolled out again; those that failed are not ready, and do not block.
	f.run(versionOne, options)
	f.eventually("all are ready with version 1", func() bool { return f.count("1", v1alpha1.StateReady) == 12 })
	if stopped("c01") != "" || stopped("c02") != "" {
		t.Errorf("the condition stays: %s", stopped("c01"))
	}
	if got := results(f.widget("c05")); !slices.Equal(got, []string{"1 Ready"}) {
		t.Errorf("the history of one that waited is %q", got)
	}
	f.checkAllConditions()
}

func TestCanariesArePinnedPromotedAndRolledOutFirst(t *testing.T) {
	f := newUpgradedFleet(t, 8, widget.Spec{})
	for _, name := range []string{"c03", "c06"} {
		w := &widget.Widget{ObjectMeta: f.object(name)}
		f.check(f.client.Patch(t.Context(), w, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"tier":"canary"}}}`))))
	}
	options := component.ReconcilerOptions{Revisions: component.RevisionOptions{Rollout: atMost(3)}}
	options.Revisions.Rollout.Canaries = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "canary"}}
	f.set("c00", vocabulary.AnnotationRollout, "pin")
	f.set("c07", vocabulary.AnnotationRollout, "promote")
	f.run(versionTwo, options)
	f.wantWith("2", "c03", "c06", "c07")
	if w := f.widget("c00"); !w.Status.IsReady() || !strings.HasSuffix(messageOf(w), "the next version is not applied, because the annotation "+operatorName+"/rollout is pin") {
		t.Errorf("%q", messageOf(w))
	}
	f.becomeReady("c03", "c07")
	f.wantWith("2", "c03", "c06", "c07")
	f.becomeReady("c06")
	f.wantWith("2", "c01", "c02", "c03", "c04", "c06", "c07")
	f.becomeReady("c01", "c02", "c04")
	f.wantWith("2", "c01", "c02", "c03", "c04", "c05", "c06", "c07")

	// A pin also counts without the option, until the spec changes.
	f.run(versionTwo, component.ReconcilerOptions{})
	f.wantWith("1", "c00")
	f.set("c00", vocabulary.AnnotationRollout, "never")
	f.eventually("the mistake is reported", func() bool {
		return strings.Contains(messageOf(f.widget("c00")), `annotation `+operatorName+`/rollout: "never" must be "pin", "promote" or "ignore"`)
	})
	f.set("c00", vocabulary.AnnotationRollout, "pin")
	f.wantWith("1", "c00")
	f.edit("c00", "edited")
	f.wantWith("2", f.names...)
	f.checkAllConditions()
}

// eventsOf returns the events of a reason in the namespace.
func (f *upgradedFleet) eventsOf(reason string) (texts []string) {
	f.Helper()
	list := &eventsv1.EventList{}
	f.check(f.client.List(f.Context(), list, client.InNamespace(f.namespace)))
	for _, event := range list.Items {
		if event.Reason == reason {
			texts = append(texts, event.Regarding.Name+": "+event.Note)
		}
	}
	return texts
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
