// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

// underWatchesAndEachUpdatePolicy also says by which method objects are written.
func underWatchesAndEachUpdatePolicy(t *testing.T, test func(t *testing.T, w *watched, policy, method string)) {
	for policy, method := range map[string]string{"replace": "PUT", "ssa-merge": "PATCH", "ssa-override": "PATCH"} {
		t.Run(policy, func(t *testing.T) { test(t, newWatched(t), policy, method) })
	}
}

// costs applies and checks what was sent for it.
func (w *watched) costs(what string, object client.Object, want map[string]int) {
	w.t.Helper()
	w.sent()
	w.mustApply(object)
	w.expect(what, want)
}

// toldOf edits the value as another manager, and waits until the watch has seen it.
func (w *watched) toldOf(value, manager string) {
	w.t.Helper()
	w.edit("a", value, manager)
	w.awaitChange("a", reconciler.EventContent)
}

func TestUnderWatchesDriftCostsOneReadAndOneWriteWhateverHappenedBefore(t *testing.T) {
	for name, happen := range map[string]func(t *testing.T, w *watched, object client.Object, method string){
		"nothing": func(_ *testing.T, w *watched, object client.Object, _ string) { w.mustApply(object) },
		"adopted with equal values": func(t *testing.T, w *watched, object client.Object, method string) {
			theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a"}, Data: map[string]string{"value": "1"}}
			if err := w.Create(t.Context(), theirs, client.FieldOwner("their-operator")); err != nil {
				t.Fatal(err)
			}
			want := map[string]int{"GET": 2, "POST": 1, "PUT": 1} // the namespace, too
			if method == "PATCH" {
				want = map[string]int{"GET": 2, "PATCH": 2}
			}
			w.costs("adoption", object, want)
		},
		"changed and changed back": func(_ *testing.T, w *watched, object client.Object, _ string) {
			w.mustApply(object)
			w.toldOf("theirs", "their-operator")
			w.toldOf("1", "their-operator")
			w.costs("changed back", object, map[string]int{})
		},
		"managed fields cleared": func(t *testing.T, w *watched, object client.Object, _ string) {
			w.mustApply(object)
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`))
			if err := w.Patch(t.Context(), w.get("a"), patch); err != nil {
				t.Fatal(err)
			}
			w.costs("cleared", object, map[string]int{})
		},
		"altered by admission": func(t *testing.T, w *watched, object client.Object, _ string) {
			w.alter("suffix", `Object{data: {"altered": object.data.value + "-altered"}}`)
			eventuallyTrue(t, "the admission policy is active", func() bool {
				probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "probe"}, Data: map[string]string{"value": "1"}}
				return w.Create(t.Context(), probe, client.DryRunAll) == nil && probe.Data["altered"] != ""
			})
			w.mustApply(object)
		},
	} {
		t.Run(name, func(t *testing.T) {
			underWatchesAndEachUpdatePolicy(t, func(t *testing.T, w *watched, policy, method string) {
				object := config("a", "1", "update-policy", policy)
				if name == "altered by admission" {
					object.Object["data"].(map[string]any)["altered"] = "as the manifest says"
				}
				happen(t, w, object, method)
				w.costs("at rest", object, map[string]int{})
				w.toldOf("theirs", "their-operator")
				repair := map[string]int{"GET": 1, method: 1}
				if name == "managed fields cleared" && policy == "ssa-override" {
					repair[method] = 3 // the fields to which the server then gives no owner are acquired, once
				}
				w.costs("drift", object, repair)
				w.costs("at rest again", object, map[string]int{})
				if got := w.get("a").Data["value"]; got != "1" {
					t.Errorf("the value is %q", got)
				}
			})
		})
	}
}

func TestUnderWatchesAnAutoscalerCostsOneReadAndNoWrite(t *testing.T) {
	underWatchesAndEachUpdatePolicy(t, func(t *testing.T, w *watched, policy, _ string) {
		expect := func(what string, want map[string]int) {
			t.Helper()
			w.sent()
			if _, err := w.apply(workload(policy, "one", nil)); err != nil { // it never becomes ready
				t.Fatal(err)
			}
			w.expect(what, want)
		}
		if _, err := w.apply(workload(policy, "one", nil)); err != nil {
			t.Fatal(err)
		}
		w.scale(5)
		w.awaitChange("a", reconciler.EventContent)
		expect("scaled", map[string]int{"GET": 1})
		expect("at rest", map[string]int{})
		if got := *w.deployment().Spec.Replicas; got != 5 {
			t.Errorf("%d replicas", got)
		}
	})
}
