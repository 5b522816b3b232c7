// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// tamper changes the value of a config map as another client.
func (b *bed) tamper(name, manager string) {
	b.Helper()
	object := &corev1.ConfigMap{}
	b.check(b.client.Get(b.Context(), b.key(name), object))
	object.Data["value"] = "theirs"
	b.check(b.client.Update(b.Context(), object, client.FieldOwner(manager)))
}

func (b *bed) drifted() string {
	b.Helper()
	if c := apimeta.FindStatusCondition(b.get().Status.Conditions, v1alpha1.ConditionDrifted); c != nil {
		return c.Message
	}
	return ""
}

// warned reports whether there is a warning about the component of the test.
func (b *bed) warned(reason, note string) error {
	list := &eventsv1.EventList{}
	b.check(b.client.List(b.Context(), list, client.InNamespace(b.namespace)))
	var texts []string
	for _, event := range list.Items {
		texts = append(texts, event.Type+" "+event.Reason+": "+event.Note)
		if event.Type == corev1.EventTypeWarning && event.Reason == reason && event.Regarding.Name == "main" && strings.Contains(event.Note, note) {
			return nil
		}
	}
	return fmt.Errorf("the events are %q", texts)
}

func TestUnderReportDriftIsLeftAndTheConditionSaysWhichClientChangedWhatAndWhen(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{DriftSpec: component.DriftSpec{DriftPolicy: v1alpha1.DriftPolicyReport}, Values: map[string]string{"a": "1", "b": "1"}})
	b.until(component.StateReady)
	b.tamper("a", "kubectl-edit")
	gone := &corev1.ConfigMap{}
	gone.Namespace, gone.Name = b.namespace, "b"
	b.check(b.client.Delete(t.Context(), gone))
	b.resetRequests()
	b.eventually("a report of both", func() error { // a reconcile may come before the event of the watch
		b.until(component.StateReady)
		said := b.drifted()
		for _, part := range []string{"/a: kubectl-edit changed data.value at 20", "/b: another client deleted it"} {
			if !strings.Contains(said, part) {
				return fmt.Errorf("the condition says %q, without %q", said, part)
			}
		}
		return nil
	})
	for _, write := range b.writes() {
		if !strings.Contains(write, "widgets/status") {
			t.Errorf("something was written: %s", write)
		}
	}
	if value, _ := b.configMap("a"); value != "theirs" {
		t.Errorf("the value is %q", value)
	}
	b.eventually("reconciles that do not write the report again", func() error {
		b.resetRequests()
		for range 3 {
			b.until(component.StateReady)
		}
		if writes := b.writes(); len(writes) > 0 {
			return fmt.Errorf("they wrote %v", writes)
		}
		return nil
	})

	// The annotation of the component takes precedence over its spec.
	b.update(func(w *widget.Widget) { w.Annotations = map[string]string{operatorName + "/drift-policy": "repair"} })
	b.eventually("the repair of both", func() error {
		b.until(component.StateReady)
		value, _ := b.configMap("a")
		if _, there := b.configMap("b"); !there || value != "1" || b.drifted() != "" {
			return fmt.Errorf("b is there: %t, the value of a is %q, the condition says %q", there, value, b.drifted())
		}
		return nil
	})
}

func TestUnderADriftPolicyThatDoesNotExistNothingIsDoneAndTheConditionSaysSo(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.until(component.StateReady)
	b.tamper("a", "kubectl-edit")
	b.update(func(w *widget.Widget) { w.Annotations = map[string]string{operatorName + "/drift-policy": "warn"} })
	w := b.until(component.StateError)
	if _, reason, message := w.Status.GetState(); reason != v1alpha1.ReasonSpecInvalid || !strings.Contains(message, `"warn" is not one of repair, report, ignore`) {
		t.Errorf("%s: %s", reason, message)
	}
	if value, _ := b.configMap("a"); value != "theirs" {
		t.Errorf("the value became %q", value)
	}
}

func TestAContestedObjectIsNamedWithItsOpponentAndItsComponentIsNotReady(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.until(component.StateReady)
	corrected := func() { // a reconcile may come before the event of the watch
		b.eventually("the correction", func() error {
			_, _, err := b.reconcile()
			if value, _ := b.configMap("a"); value != "1" {
				return fmt.Errorf("the value is %q, and the reconcile returned %v", value, err)
			}
			return nil
		})
	}
	for range 3 {
		b.tamper("a", "their-operator")
		corrected()
	}
	b.tamper("a", "their-operator")
	w, result, err := b.reconcile()
	state, _, message := w.Status.GetState()
	if state != component.StateProcessing || !strings.Contains(message, "their-operator changes data.value again and again") {
		t.Errorf("%s: %s (%v)", state, message, err)
	}
	if result.RequeueAfter > 2e9 || result.RequeueAfter == 0 {
		t.Errorf("it comes again after %s", result.RequeueAfter)
	}
	if value, _ := b.configMap("a"); value != "theirs" {
		t.Error("it was corrected once more, at once")
	}
	b.eventually("a warning that names the opponent", func() error { return b.warned("FieldConflict", "their-operator changes data.value again and again") })
	b.forward += 2e9
	corrected()
	b.forward += 5e9
	if state, _, message := b.until(component.StateReady).Status.GetState(); state != component.StateReady {
		t.Errorf("after the contest: %s: %s", state, message)
	}
}
