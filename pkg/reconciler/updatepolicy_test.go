// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

func TestAReplaceMakesTheObjectWhatTheManifestSays(t *testing.T) {
	const policy = "replace"
	b := newBench(t)
	b.mustApply(config("a", "1", "update-policy", policy))
	b.change("a", func(c *corev1.ConfigMap) { c.Data["more"] = "by hand" })
	if outcome := b.mustApply(config("a", "1", "update-policy", policy)); len(outcome.Steps) > 0 {
		t.Errorf("steps %v for a field that the manifest does not set", outcome.Steps)
	}
	b.mustApply(config("a", "2", "update-policy", policy))
	if got := b.get("a").Data; got["value"] != "2" || len(got) != 1 {
		t.Errorf("data %v, want only what the manifest says", got)
	}
}

func TestAMergeDoesNotChangeTheFieldsOfOthers(t *testing.T) {
	const policy = "ssa-merge"
	b := newBench(t)
	b.mustApply(config("a", "1", "update-policy", policy))
	b.change("a", func(c *corev1.ConfigMap) { c.Data["more"] = "by hand" })
	b.mustApply(config("a", "2", "update-policy", policy))
	if got := b.get("a").Data; got["value"] != "2" || got["more"] != "by hand" {
		t.Errorf("data %v", got)
	}
	withoutData := config("a", "2", "update-policy", policy)
	delete(withoutData.Object, "data")
	b.mustApply(withoutData)
	if got := b.get("a").Data; len(got) != 1 || got["more"] != "by hand" {
		t.Errorf("data %v after the manifest dropped its field", got)
	}
}

func TestIgnoredFieldsAreNeverWrittenAfterTheCreationAndTheirDriftIsNoDrift(t *testing.T) {
	for _, policy := range []string{"replace", "ssa-merge", "ssa-override"} {
		t.Run(policy, func(t *testing.T) {
			b := newBench(t)
			manifest := func(value, other string) client.Object {
				object := config("a", value, "update-policy", policy, "ignore-fields", "/data/value")
				object.Object["data"].(map[string]any)["other"] = other
				return object
			}
			b.mustApply(manifest("1", "1"))
			if got := b.get("a").Data["value"]; got != "1" {
				t.Errorf("value %q, want what the manifest creates", got)
			}
			b.change("a", func(c *corev1.ConfigMap) { c.Data["value"] = "by hand" })
			if outcome := b.mustApply(manifest("1", "1")); len(outcome.Steps) > 0 {
				t.Errorf("steps %v for the drift of an ignored field", outcome.Steps)
			}
			b.mustApply(manifest("2", "2"))
			if got := b.get("a").Data; got["value"] != "by hand" || got["other"] != "2" {
				t.Errorf("data %v", got)
			}
		})
	}
}

func TestFieldsAreIgnoredByTypeAndLabels(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("a", "1"), config("b", "1"))
	b.interpose(t, reconciler.ReconcilerOptions{IgnoreFields: []reconciler.IgnoreFields{
		{Type: reconciler.TypeInfo{Group: "*", Kind: "Secret"}, Paths: []string{"/data"}},
		{Type: reconciler.TypeInfo{Kind: "ConfigMap"}, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"injected": "yes"}}, Paths: []string{"/data/value"}},
	}})
	labelled := config("a", "1")
	labelled.SetLabels(map[string]string{"injected": "yes"})
	b.mustApply(labelled, config("b", "1"))
	for _, name := range []string{"a", "b"} {
		b.change(name, func(c *corev1.ConfigMap) { c.Data["value"] = "by hand" })
	}
	outcome := b.mustApply(labelled, config("b", "1"))
	if a, b := b.get("a").Data["value"], b.get("b").Data["value"]; a != "by hand" || b != "1" || len(outcome.Steps) != 1 {
		t.Errorf("a has %q and b has %q after the steps %v; only b is to be repaired", a, b, outcome.Steps)
	}
	// Without the rule the manifest counts again.
	b.interpose(t, reconciler.ReconcilerOptions{})
	b.mustApply(labelled, config("b", "1"))
	if value := b.get("a").Data["value"]; value != "1" {
		t.Errorf("a has %q without a rule", value)
	}
}
