// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// series returns the value of every series of a metric, by its labels but the controller.
func (b *bed) series(name string) map[string]float64 {
	b.Helper()
	families, err := metrics.Registry.Gather()
	b.check(err)
	values := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, one := range family.GetMetric() {
			var labels []string
			for _, label := range one.GetLabel() {
				if label.GetName() != "controller" {
					labels = append(labels, label.GetValue())
				}
			}
			values[strings.Join(labels, " ")] += one.GetGauge().GetValue() + one.GetCounter().GetValue() + float64(one.GetHistogram().GetSampleCount())
		}
	}
	return values
}

// since returns what has changed of a metric.
func since(before, now map[string]float64) map[string]float64 {
	changed := map[string]float64{}
	for labels, value := range now {
		if difference := value - before[labels]; difference != 0 {
			changed[labels] = difference
		}
	}
	return changed
}

func TestTheMetricsOfALifeNameNoObjectAndEndWithIt(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{}, func(b *bed) {
		b.reconciler.WithPostReconcileHook(func(context.Context, client.Client, *widget.Widget) error { return nil })
	})
	names := []string{"corbel_components", "corbel_dependents", "corbel_reconcile_total", "corbel_writes_total", "corbel_phase_duration_seconds", "corbel_requests_total"}
	before := map[string]map[string]float64{}
	for _, name := range names {
		before[name] = b.series(name)
	}
	changed := func(name string) map[string]float64 { return since(before[name], b.series(name)) }

	b.create(widget.Spec{Values: map[string]string{"alpha": "1", "beta": "2"}})
	b.until(v1alpha1.StateReady)
	for _, tc := range []struct {
		name, labels string
		want         float64
	}{
		{"corbel_components", "Ready Ready", 1},
		{"corbel_dependents", "Applied", 2},
		{"corbel_reconcile_total", "ready", 1},
		{"corbel_writes_total", "missing create", 2},
	} {
		if got := changed(tc.name)[tc.labels]; got != tc.want {
			t.Errorf("%s{%s} is %v, want %v: %v", tc.name, tc.labels, got, tc.want, changed(tc.name))
		}
	}
	if got := slices.Sorted(maps.Keys(changed("corbel_phase_duration_seconds"))); !slices.Equal(got, []string{"execute", "hooks", "plan", "read", "record", "render"}) {
		t.Errorf("phases %v", got)
	}
	// Both the operator's requests about the component and those about its dependents.
	if got := changed("corbel_requests_total"); got["2xx create"] < 2 || got["2xx patch"] < 2 {
		t.Errorf("requests %v", got)
	}
	b.checkLabels("alpha", "beta", "main", b.namespace)

	b.check(b.client.Delete(t.Context(), b.get()))
	b.untilGone()
	for _, name := range []string{"corbel_components", "corbel_dependents"} {
		if left := changed(name); len(left) > 0 {
			t.Errorf("%s still counts %v", name, left)
		}
	}
	if changed("corbel_reconcile_total")["gone"] == 0 {
		t.Error("the last reconcile was not counted")
	}
}

// checkLabels fails if a label of our metrics has a value that names an object.
func (b *bed) checkLabels(names ...string) {
	b.Helper()
	families, err := metrics.Registry.Gather()
	b.check(err)
	seen := 0
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "corbel_") {
			continue
		}
		seen++
		for _, one := range family.GetMetric() {
			for _, label := range one.GetLabel() {
				if slices.ContainsFunc(names, func(name string) bool { return strings.Contains(label.GetValue(), name) }) {
					b.Errorf("%s has the label %s=%q", family.GetName(), label.GetName(), label.GetValue())
				}
			}
		}
	}
	if seen == 0 {
		b.Error("there are no metrics")
	}
}

func TestSpansOfAReconcile(t *testing.T) {
	w := newWatchman(t, manifests.GeneratorFunc(configMaps))
	w.create(widget.Spec{Values: map[string]string{"a": "1"}})
	w.reconcileTimes(1)
	byID, parents := map[string]string{}, map[string]string{}
	spans := w.spans.GetSpans()
	for _, span := range spans {
		byID[span.SpanContext.SpanID().String()] = span.Name
	}
	for _, span := range spans {
		parents[span.Name] = byID[span.Parent.SpanID().String()]
	}
	for name, parent := range map[string]string{
		"corbel.reconcile": "", "corbel.render": "corbel.reconcile", "corbel.read": "corbel.reconcile", "corbel.plan": "corbel.reconcile",
		"corbel.record": "corbel.reconcile", "corbel.execute": "corbel.reconcile", "corbel.stage": "corbel.execute", "corbel.write": "corbel.stage",
	} {
		if got, ok := parents[name]; !ok || got != parent {
			t.Errorf("span %s is below %q, want %q: %v", name, got, parent, parents)
		}
	}
}
