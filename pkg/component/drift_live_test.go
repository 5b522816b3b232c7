// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
