// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

func TestWhichStatusIsLost(t *testing.T) {
	for name, test := range map[string]struct {
		change             func(w *widget)
		unclaimed, claimed bool // without our finalizer; claimed by this process just now
		want               bool
	}{
		"an empty status":                       {want: true},
		"a condition of another writer":         {change: func(w *widget) { w.Status.Conditions = []metav1.Condition{{Type: "Other"}} }, want: true},
		"the default of the definition":         {change: func(w *widget) { w.Status.ObservedGeneration = -1 }, want: true},
		"a new component":                       {unclaimed: true},
		"a component that was claimed just now": {claimed: true},
		"applied, and no inventory":             {change: func(w *widget) { w.Status.State, w.Status.AppliedGeneration = v1alpha1.StateReady, 1 }, want: true},
		"applied, and an empty inventory":       {change: func(w *widget) { w.Status.AppliedGeneration, w.Status.Inventory.Format = 1, v1alpha1.InventoryFormat }},
		"applied, and an inventory":             {change: func(w *widget) { w.Status.AppliedGeneration, w.Status.Inventory = 1, someInventory }},
		"waiting since an earlier build":        {change: func(w *widget) { w.Status.State, w.Status.Revision = v1alpha1.StatePending, 1 }},
		"suspended since an earlier build":      {change: func(w *widget) { w.Status.State = v1alpha1.StateSuspended }},
		"a list of another runtime that was taken over": {change: func(w *widget) {
			_ = json.Unmarshal([]byte("[]"), &w.Status.Inventory)
			w.Status.Inventory.Adopt()
			w.Status.AppliedGeneration = 1
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := testHandler(t, &fakeEngine{})
			obj := newWidget()
			if !test.unclaimed {
				obj.Finalizers = []string{h.self.Finalizer}
			}
			if test.change != nil {
				test.change(obj)
			}
			noted := h.records.NoteLost(obj, test.claimed)
			if got := obj.Status.Inventory.IsLost(); got != test.want || got != noted || got && isEmpty(obj) {
				t.Errorf("lost %t, empty %t", got, isEmpty(obj))
			}
		})
	}
}

// No state of an earlier build counts as lost.
func TestNoStatusOfAnEarlierBuildIsLost(t *testing.T) {
	files, err := filepath.Glob("testdata/upgrade/*/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		check(t, err)
		var objects []widget
		check(t, json.Unmarshal(content, &objects))
		for i := range objects {
			if obj := &objects[i]; obj.Kind == "Widget" {
				h, _ := testHandler(t, &fakeEngine{})
				h.self.Finalizer = obj.Finalizers[0]
				if h.records.NoteLost(obj, false); obj.Status.Inventory.IsLost() {
					t.Errorf("%s: %s", file, obj.Name)
				}
			}
		}
	}
}
