// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
)

// shopView is a view of a Shop that is being processed.
func shopView(dependents ...dependent) view {
	shop := &shopv1alpha1.Shop{ObjectMeta: metav1.ObjectMeta{Namespace: "market", Name: "corner"}}
	shop.Status.State = v1alpha1.StateProcessing
	shop.Status.Progress = "1/3"
	shop.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Message: "waits for\nJob migration"}}
	return view{shop: shop, dependents: dependents}
}

var (
	before    = stageOf(v1alpha1.InventoryItem{ApplyOrder: -20000})
	ordinary  = stageOf(v1alpha1.InventoryItem{})
	settings  = dependent{stage: before, kind: "ConfigMap", name: "settings", state: "Ready", object: &unstructured.Unstructured{}}
	migration = dependent{stage: before, kind: "Job", name: "migration", state: "NotReady", why: "0 of 1 completions", object: &unstructured.Unstructured{}}
	web       = dependent{stage: ordinary, kind: "Deployment", name: "web", state: "Pending", why: "not created yet"}
)

func TestTree(t *testing.T) {
	for _, test := range []struct {
		name string
		view view
		want []string
	}{
		{"waves come in their order, whatever the order of the inventory", shopView(web, settings, migration), []string{
			"Shop market/corner: Processing 1/3  waits for Job migration",
			"├─ hooks before",
			"│  ├─ ConfigMap   settings   Ready",
			"│  └─ Job         migration  NotReady  0 of 1 completions",
			"└─ wave 0",
			"   └─ Deployment  web        Pending   not created yet",
		}},
		{"without dependents there is only the Shop", shopView(), []string{"Shop market/corner: Processing 1/3  waits for Job migration"}},
		{"a Shop without a status was not seen", view{shop: &shopv1alpha1.Shop{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}}},
			[]string{"Shop a/b: not seen yet"}},
		{"a deleted Shop is gone", view{}, []string{"Shop: gone"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, tree(test.view)); diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChanges(t *testing.T) {
	done := migration
	done.state, done.why = "Ready", ""
	for _, test := range []struct {
		name          string
		before, after view
		want          []string
	}{
		{"at first everything is new", view{}, shopView(migration),
			[]string{"hooks before  Job migration: NotReady  0 of 1 completions", "Shop market/corner: Processing 1/3"}},
		{"only what changed is said", shopView(settings, migration), shopView(settings, done), []string{"hooks before  Job migration: Ready"}},
		{"nothing is said about nothing", shopView(settings, web), shopView(settings, web), nil},
		{"what is dropped is gone, unless it never was there", shopView(settings, web), shopView(), []string{"hooks before  ConfigMap settings: gone"}},
		{"the Shop may go", shopView(settings), view{}, []string{"hooks before  ConfigMap settings: gone", "Shop: gone"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, changes(test.before, test.after)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStateOf(t *testing.T) {
	live := func(content map[string]any) *unstructured.Unstructured {
		content["apiVersion"], content["kind"] = "v1", "ConfigMap"
		return &unstructured.Unstructured{Object: content}
	}
	for _, test := range []struct {
		name   string
		item   v1alpha1.InventoryItem
		object *unstructured.Unstructured
		want   string
	}{
		{"recorded, but not created", v1alpha1.InventoryItem{}, nil, "Pending: not created yet"},
		{"created, and deleted by another client", v1alpha1.InventoryItem{UID: "1"}, nil, "gone: "},
		{"purged", v1alpha1.InventoryItem{UID: "1", Phase: v1alpha1.PhaseCompleted}, nil, "Completed: did its work and was removed"},
		{"being deleted", v1alpha1.InventoryItem{UID: "1"},
			live(map[string]any{"metadata": map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"}}), "Deleting: "},
		{"there and of a kind without status", v1alpha1.InventoryItem{UID: "1"}, live(map[string]any{}), "Ready: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			state, why := stateOf(test.item, test.object)
			if got := state + ": " + why; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestScreen(t *testing.T) {
	start := time.Unix(0, 0)
	draw := func(terminal bool) string {
		var out bytes.Buffer
		s := &screen{out: &out, terminal: terminal, start: start, now: func() time.Time { return start.Add(1500 * time.Millisecond) }}
		s.draw(shopView(web))
		s.draw(shopView(web))
		s.draw(shopView(web, settings))
		s.endStep(shopView(web, settings))
		s.say("Ready")
		s.draw(view{})
		return out.String()
	}
	t.Run("a terminal redraws the tree in place, when it changes and only until something is said", func(t *testing.T) {
		got := draw(true)
		if count := strings.Count(got, "\x1b[J"); count != 1 {
			t.Errorf("redrawn %d times, want 1:\n%q", count, got)
		}
		if !strings.Contains(got, "\x1b[3A\x1b[J") {
			t.Errorf("the cursor does not go up by the 3 lines of the first tree:\n%q", got)
		}
		if strings.Count(got, wrapOff) != strings.Count(got, wrapOn) {
			t.Error("the terminal does not wrap lines any more")
		}
	})
	t.Run("elsewhere there are plain lines", func(t *testing.T) {
		got := draw(false)
		if strings.Contains(got, "\x1b") {
			t.Errorf("control characters:\n%q", got)
		}
		if !strings.HasPrefix(got, "[   1.5s]   wave 0        Deployment web: Pending  not created yet\n") {
			t.Errorf("the first change is missing:\n%s", got)
		}
	})
}
