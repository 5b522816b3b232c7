// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"testing"
	"time"

	"github.com/corbel-run/corbel/pkg/reconciler"
	corev1 "k8s.io/api/core/v1"
)

func TestObjectsWithACopyOfTheLabelTriggerNothingAndOursDo(t *testing.T) {
	w := newWatched(t)
	w.mustApply(configs(2, "1")...)
	owned := w.get("c00")
	copied := func(name string, annotations map[string]string) {
		copied := w.in(config(name, "1"))
		copied.SetLabels(owned.Labels)
		copied.SetAnnotations(annotations)
		w.create(copied)
		for _, value := range []string{"2", "3"} {
			w.change(name, func(c *corev1.ConfigMap) { c.Data["value"] = value })
		}
		w.deleteByHand(name)
	}
	copied("label", nil)
	for range 2 {
		copied("all", owned.Annotations)
	}
	// The second change finds nothing in the old record that names the owner.
	w.change("c01", func(c *corev1.ConfigMap) { delete(c.Annotations, engineName+"/owner") })
	w.change("c01", func(c *corev1.ConfigMap) { c.Data["value"] = "theirs" })

	var notified map[string][]reconciler.Change
	for deadline := time.Now().Add(2 * time.Minute); len(notified["c01"]) < 2; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("notified of %v", notified)
		}
		notified = map[string][]reconciler.Change{}
		w.lock.Lock()
		for _, change := range w.changes {
			notified[change.Key.Name] = append(notified[change.Key.Name], change)
		}
		w.lock.Unlock()
	}
	if len(notified["label"]) > 0 {
		t.Errorf("the owner was notified of a copy of the label: %v", notified["label"])
	}
	if all := notified["all"]; len(all) != 8 || all[0].After != 0 || all[7].After == 0 {
		t.Errorf("for a copy of label and annotation, the owner was notified of %v", all)
	}
	w.mustApply(configs(2, "1")...)
	if ours := w.get("c01"); ours.Data["value"] != "1" || ours.Annotations[engineName+"/owner"] == "" {
		t.Errorf("ours is %v with %v", ours.Annotations, ours.Data)
	}
}
