// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// randomChart is a chart with two objects in two waves that have the same random value.
func randomChart(t *testing.T) manifests.Generator {
	t.Helper()
	const data = "data: {random: {{ $random }}, value: \"{{ .Values.value }}\"}\n"
	return chart(t, "", "{{- $random := randAlphaNum 10 }}\n"+head("v1", "ConfigMap", "a", nil)+data+"---\n"+
		head("v1", "ConfigMap", "b", []string{"apply-order", "1"})+data)
}

// TestACrashMakesNoRandomValueAnew kills the operator at every request of an installation and of
// an upgrade of a chart with a random value. The next operator applies the value that the first
// one may have applied.
func TestACrashMakesNoRandomValueAnew(t *testing.T) {
	t.Parallel()
	for name, upgrade := range map[string]bool{"install": false, "upgrade": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crashAtEachRequest(t, func(t *testing.T, g *crasher) { crashWithRandom(t, g, upgrade) })
		})
	}
}

func crashWithRandom(t *testing.T, g *crasher, upgrade bool) {
	f := newFixture(t)
	first := f.startWith(t, randomChart(t), g.wrap)
	var bundle *Bundle
	if upgrade {
		bundle = f.bundle(t, map[string]string{"value": "1"})
		f.ready(t, bundle)
		g.arm()
		f.update(t, bundle, map[string]string{"value": "2"})
	} else {
		g.arm()
		bundle = f.bundle(t, map[string]string{"value": "2"})
	}
	eventually(t, "the operator to crash or to finish", func(ctx context.Context) error {
		if g.HasCrashed() {
			return nil
		}
		if err := f.Get(ctx, client.ObjectKeyFromObject(bundle), bundle); err != nil {
			return err
		}
		if state, _, message := bundle.Status.GetState(); state != v1alpha1.StateReady || bundle.Status.ObservedGeneration != bundle.Generation {
			return fmt.Errorf("%s: %s", state, message)
		}
		return nil
	})
	first.stop(t)
	before := randomValues(t, f)
	defer f.startWith(t, randomChart(t), g.count).stop(t)
	f.ready(t, bundle)
	after := randomValues(t, f)
	if after["a"] == "" || after["a"] != after["b"] {
		t.Errorf("the objects have different values: %v", after)
	}
	for name, value := range before {
		if value != after[name] {
			t.Errorf("%s had the value %s, and has %s", name, value, after[name])
		}
	}
}

// randomValues returns the random values of the revision with the value 2 that are applied.
func randomValues(t *testing.T, f *fixture) map[string]string {
	t.Helper()
	list := read(t, func(ctx context.Context) (*corev1.ConfigMapList, error) {
		list := &corev1.ConfigMapList{}
		return list, f.List(ctx, list, client.InNamespace(f.namespace))
	})
	values := map[string]string{}
	for _, object := range list.Items {
		if object.Data["value"] == "2" {
			values[object.Name] = object.Data["random"]
		}
	}
	return values
}
